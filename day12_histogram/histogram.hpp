// How many values fall into each bin: the host API of day 12. No kernels here; they are in histogram.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/bench/variant.hpp"
#include "common/device/device_view.hpp"

namespace day12 {

// 64 bits: no input fills it, so no count ever wraps. (std::uint64_t is not the type that atomicAdd knows.)
using Counter = unsigned long long;

// The values that are counted: [lower, upper), cut into counts.size() bins of equal width.
//
//     bin(v) = floor((v - lower) * bins / (upper - lower))        computed exactly, no floating point
//
// When upper - lower is a multiple of the bins, each is (upper - lower) / bins values wide. Values outside are not counted.
struct Range {
    std::int64_t lower;
    std::int64_t upper;
};

inline constexpr Range kAllBytes = {.lower = 0, .upper = 256};  // with 256 bins: a bin for each value
inline constexpr Range kAllInts = {.lower = -(std::int64_t{1} << 31), .upper = std::int64_t{1} << 31};

// Queues counts[b] = number of values in bin b on `stream`. counts is overwritten, not added to: it is cleared by a
// cudaMemsetAsync before the kernel. values may begin at any element, and may be empty; then all counts are 0.
// Throws std::invalid_argument when there is no bin, or more than 2^31 of them; when the range is empty or not within kAllInts;
// when counts overlaps values; or when the variant cannot hold so many bins. CudaError when the launch fails.
template <class Value>
using LauncherOf = void (*)(course::DeviceSpan<const Value> values, Range range,
                            course::DeviceSpan<Counter> counts, cudaStream_t stream);

// A version for each type of value.
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
};

// The versions, slow to fast.
using Histogram = course::Variant<Launcher, Problem>;
std::span<const Histogram> variants();

// The same on the CPU: each of its cores counts a part of the values, by the formula above.
void histogram_on_cpu(std::span<const std::uint8_t> values, Range range, std::span<Counter> counts);
void histogram_on_cpu(std::span<const std::int32_t> values, Range range, std::span<Counter> counts);

}  // namespace day12
