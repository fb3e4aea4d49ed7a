// The host API of day 15: the sum, minimum or maximum of floats, 32-bit or 64-bit integers.
// The kernels are in reduction.cuh and beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day15 {

// --- What is reduced -----------------------------------------------------------------------------
//
// An operation has a type of element and of result, a function that makes one result of two, and an
// identity: the value that changes nothing. T is float, std::int32_t or std::int64_t.

// Floats are added as floats, so the result depends on the order. 32-bit integers are added in 64
// bits, exact for up to 2^32 of them. 64-bit integers wrap modulo 2^64. The sum of no elements is
// 0.
template <class T>
struct Sum {
    using Element = T;
    using Result = std::conditional_t<std::is_same_v<T, std::int32_t>, std::int64_t, T>;

    static __host__ __device__ Result identity() { return 0; }

    __host__ __device__ Result operator()(Result a, Result b) const {
        if constexpr (std::is_integral_v<Result>) {
            // Unsigned arithmetic wraps; signed overflow is undefined.
            return static_cast<Result>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
        } else {
            return a + b;
        }
    }
};

// A NaN anywhere makes the result NaN. -0 and +0 are equal: of several zeros any may be the result.
// The minimum of no elements is +Inf, or the largest integer.
template <class T>
struct Min {
    using Element = T;
    using Result = T;

    static __host__ __device__ Result identity() {
        using Limits = std::numeric_limits<T>;
        return Limits::has_infinity ? Limits::infinity() : Limits::max();
    }

    // a != a: a is NaN. If b is NaN, the comparison is false and the result is b.
    __host__ __device__ Result operator()(Result a, Result b) const { return a < b || a != a ? a : b; }
};

// Like Min; the maximum of no elements is -Inf, or the smallest integer.
template <class T>
struct Max {
    using Element = T;
    using Result = T;

    static __host__ __device__ Result identity() {
        using Limits = std::numeric_limits<T>;
        return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    }

    __host__ __device__ Result operator()(Result a, Result b) const { return a > b || a != a ? a : b; }
};

// --- On the device -------------------------------------------------------------------------------

// The most blocks, and the most segments of the deterministic version, that a reduction may have.
inline constexpr unsigned kMostBlocks = 4096;

// Device memory for intermediate results, 8 MiB. The caller allocates it once and passes it to
// every call. Two reductions that may run at the same time, on two streams, need two workspaces.
class Workspace {
  public:
    Workspace();  // on the current device; throws CudaError

    // The counter of is_last_block(): 0 whenever no reduction runs.
    unsigned* ticket() { return ticket_.data(); }
    // kMostBlocks * 256 values: one for each thread of the largest grid.
    template <class Result>
    Result* results() {
        static_assert(sizeof(Result) <= sizeof(std::uint64_t), "Workspace: a result has at most 8 bytes");
        return reinterpret_cast<Result*>(results_.data());
    }

  private:
    course::DeviceBuffer<unsigned> ticket_;
    course::DeviceBuffer<std::uint64_t> results_;
};

// Enqueues out[0] = the reduction of all of `in` on `stream`. `in` may have any length, 0 included,
// and any alignment of its type. `out` has one element, which is not part of `in`. `blocks` is the
// size of the grid, for experiments; 0 lets the launcher choose.
// Throws std::invalid_argument for a bad argument, CudaError when a launch fails.
template <class Op>
using Launcher = void (*)(course::DeviceSpan<const typename Op::Element> in,
                          course::DeviceSpan<typename Op::Result> out, Workspace& workspace, unsigned blocks,
                          cudaStream_t stream);

// The versions, slow to fast: eight for the sum of floats, `deterministic` for the other eight
// operations. The problem is the number of elements.
template <class Op>
using Reduction = course::Version<Launcher<Op>, std::size_t>;
template <class Op>
std::span<const Reduction<Op>> versions();
template <>
std::span<const Reduction<Sum<float>>> versions<Sum<float>>();

// --- On the CPU ----------------------------------------------------------------------------------

// Sums of floats are added in double, everything else is exact in its own type.
template <class Op>
using Exact = std::conditional_t<std::is_same_v<typename Op::Result, float>, double, typename Op::Result>;

// The reference: plain loops with OpenMP.
template <class Op>
Exact<Op> reduce_on_cpu(std::span<const typename Op::Element> in);

// Two sums in float precision, one element after the other, whose errors the program compares: the
// plain loop, and compensated summation (W. Kahan, "Further remarks on reducing truncation errors",
// CACM 8, 1965).
float sum_in_order(std::span<const float> in);
float sum_kahan(std::span<const float> in);

}  // namespace day15
