// The host API of day 12: how many values fall into each bin. The kernels are in histogram.cuh and
// beyond/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day12 {

// 64 bits, so that no count ever wraps. (atomicAdd takes this type, not std::uint64_t.)
using Counter = unsigned long long;

// The values that are counted: [lower, upper), divided into counts.size() bins of equal width.
//
//     bin(v) = floor((v - lower) * bins / (upper - lower))        in whole numbers
//
// Values outside the range are not counted.
struct Range {
    std::int64_t lower;
    std::int64_t upper;
};

inline constexpr Range kAllBytes = {.lower = 0, .upper = 256};  // with 256 bins: a bin per byte
inline constexpr Range kAllInts = {.lower = -(std::int64_t{1} << 31), .upper = std::int64_t{1} << 31};

// Enqueues counts[b] = number of values in bin b on `stream`. counts is overwritten, not added to:
// a cudaMemsetAsync clears it before the kernel. `values` may start at any element and may be
// empty. Throws std::invalid_argument for 0 or more than 2^31 bins, a range that is empty or not
// within kAllInts, counts that overlap the values, or a problem that the version cannot run;
// CudaError when the launch fails.
template <class Value>
using LauncherOf = void (*)(course::DeviceSpan<const Value> values, Range range,
                            course::DeviceSpan<Counter> counts, cudaStream_t stream);

// One launcher per type of value.
struct Launcher {
    LauncherOf<std::uint8_t> bytes;
    LauncherOf<std::int32_t> ints;

    void operator()(course::DeviceSpan<const std::uint8_t> values, Range range,
                    course::DeviceSpan<Counter> counts, cudaStream_t stream) const {
        bytes(values, range, counts, stream);
    }
    void operator()(course::DeviceSpan<const std::int32_t> values, Range range,
                    course::DeviceSpan<Counter> counts, cudaStream_t stream) const {
        ints(values, range, counts, stream);
    }
};

struct Problem {
    std::size_t size;
    std::size_t value_bytes;  // 1 or 4
    std::size_t bins;
    Range range = kAllBytes;
};

// The versions, slow to fast. All but the last count bytes in 256 bins; any_bins counts everything.
using Histogram = course::Version<Launcher, Problem>;
std::span<const Histogram> versions();

// Three ways to count ints in more bins than a block's shared memory has room for; any_bins chooses
// between the last two. They count ints in any number of bins, and no bytes.
std::span<const Histogram> many_bins_versions();

// The reference: the formula above in plain loops, with OpenMP.
void histogram_on_cpu(std::span<const std::uint8_t> values, Range range, std::span<Counter> counts);
void histogram_on_cpu(std::span<const std::int32_t> values, Range range, std::span<Counter> counts);

}  // namespace day12
