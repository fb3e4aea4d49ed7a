// Many numbers become one: sum, minimum or maximum of floats, 32-bit and 64-bit integers. The host API of day 15.
// No kernels here; they are in reduction.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "common/bench/variant.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day15 {

// --- What is reduced -------------------------------------------------------------------------------------------------
//
// An operation says what goes in, what comes out, how two results become one, and which value changes nothing: the result
// of no elements at all. T is float, std::int32_t or std::int64_t.

// Floats are added as floats: the result depends on the order, which is half of today's lesson. 32-bit integers are added in
// 64 bits, exact for up to 2^32 of them. 64-bit integers wrap modulo 2^64. The sum of nothing is 0.
template <class T>
struct Sum {
    using Element = T;
    using Result = std::conditional_t<std::is_same_v<T, std::int32_t>, std::int64_t, T>;

    static __host__ __device__ Result identity() { return 0; }

    __host__ __device__ Result operator()(Result a, Result b) const {
        if constexpr (std::is_integral_v<Result>) {
            // Unsigned, because only there is wrapping defined.
            return static_cast<Result>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
        } else {
            return a + b;
        }
    }
};

// A NaN anywhere makes the result NaN. -0 and +0 are equal: of several zeros any may be the result.
// The minimum of nothing is +Inf, or the largest integer.
template <class T>
struct Min {
    using Element = T;
    using Result = T;

    static __host__ __device__ Result identity() {
        using Limits = std::numeric_limits<T>;
        return Limits::has_infinity ? Limits::infinity() : Limits::max();
    }

    // a != a: a is NaN. If b is, the comparison fails and b it is.
    __host__ __device__ Result operator()(Result a, Result b) const { return a < b || a != a ? a : b; }
};

// The same upside down; the maximum of nothing is -Inf, or the smallest integer.
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

// --- On the device ---------------------------------------------------------------------------------------------------

// The most blocks, and the most segments of the deterministic version, that a reduction may have.
inline constexpr unsigned kMostBlocks = 4096;

// Device memory, 8 MiB, that a reduction needs for its intermediate results. The caller makes it once and passes it to every call:
// it is zeroed here, and each reduction leaves it as it found it. Two reductions that may run at the same time, on two
// streams, need two of them.
class Workspace {
  public:
    Workspace();  // on the current device; throws CudaError

    // 0 whenever no reduction runs.
    unsigned* ticket() { return ticket_.data(); }
    // For kMostBlocks blocks, one for each thread; never read before it was written.
    template <class Result>
    Result* results() {
        static_assert(sizeof(Result) <= sizeof(std::uint64_t), "Workspace: has room for 8 bytes a result");
        return reinterpret_cast<Result*>(results_.data());
    }

  private:
    course::DeviceBuffer<unsigned> ticket_;
    course::DeviceBuffer<std::uint64_t> results_;
};

// Queues out[0] = the reduction of all of `in` on `stream`. `in` may have any length, 0 included, and any alignment of its
// type; `out` has one element, not one of `in`. `blocks` is the size of the grid, for experiments: 0 lets the launcher choose.
// Throws std::invalid_argument for other lengths, an `out` inside `in` or more than kMostBlocks blocks; CudaError when
// a launch fails.
template <class Op>
using Launcher = void (*)(course::DeviceSpan<const typename Op::Element> in,
                          course::DeviceSpan<typename Op::Result> out, Workspace& workspace, unsigned blocks,
                          cudaStream_t stream);

// The versions, slow to fast, for any of the nine operations. The problem is the number of elements.
template <class Op>
using Reduction = course::Variant<Launcher<Op>, std::size_t>;
template <class Op>
std::span<const Reduction<Op>> variants();

// --- On the CPU --------------------------------------------------------------------------------------------------------

// Sums of floats are added in double, everything else is exact in its own type.
template <class Op>
using Exact = std::conditional_t<std::is_same_v<typename Op::Result, float>, double, typename Op::Result>;

// The reference: a plain loop over all cores.
template <class Op>
Exact<Op> reduce_on_cpu(std::span<const typename Op::Element> in);

// Two sums of floats in float, one element after the other, to compare errors with: as everybody writes it, and with what each addition
// lost carried along (W. Kahan, "Further remarks on reducing truncation errors", CACM 8, 1965).
float sum_in_order(std::span<const float> in);
float sum_kahan(std::span<const float> in);

}  // namespace day15
