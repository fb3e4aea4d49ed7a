// Day 12's host code: argument checks, the list of versions. The kernels and their launches are in
// histogram.cuh, beyond/copies.cuh, beyond/any_bins.cuh and beyond/many_bins.cuh.
#include <array>
#include <cstdint>
#include <string>

#include "beyond/any_bins.cuh"
#include "beyond/copies.cuh"
#include "beyond/many_bins.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "histogram.cuh"
#include "histogram.hpp"

namespace day12 {
namespace {

using course::DeviceSpan;
using course::require;

constexpr std::size_t kMostBins = std::size_t{1} << 31;

template <class Value>
void check_arguments(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts) {
    require(!counts.empty() && counts.size() <= kMostBins, "histogram: counts has ", counts.size(),
            " bins; expected 1 to 2^31");
    require(kAllInts.lower <= range.lower && range.lower < range.upper && range.upper <= kAllInts.upper,
            "histogram: range is [", range.lower, ", ", range.upper,
            "); expected lower < upper, both from -2^31 to 2^31");
    require(!overlap(values, counts), "histogram: counts overlaps values; expected no element in common");
}

// counts = 0, and true if there is something to count.
template <class Value>
bool begin(DeviceSpan<const Value> values, DeviceSpan<Counter> counts, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(counts.data(), 0, counts.size() * sizeof(Counter), stream));
    return !values.empty();
}

// Why a version that counts bytes in 256 bins cannot run, or "".
std::string why_not_bytes(const Problem& problem) {
    if (problem.value_bytes == 1 && problem.bins == kBins && problem.range.lower == kAllBytes.lower &&
        problem.range.upper == kAllBytes.upper)
        return "";
    return "it counts bytes in 256 bins; any_bins counts " +
           std::string(problem.value_bytes == 1 ? "bytes" : "ints") + " of [" +
           std::to_string(problem.range.lower) + ", " + std::to_string(problem.range.upper) + ") in " +
           std::to_string(problem.bins) + " bins";
}

template <class Value>
void refuse_unless_bytes(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts) {
    check_arguments(values, range, counts);
    const std::string reason = why_not_bytes({values.size(), sizeof(Value), counts.size(), range});
    require(reason.empty(), "histogram: ", reason);
}

// The versions that count bytes in 256 bins.
template <auto kLaunch>
void launch_bytes(DeviceSpan<const std::uint8_t> values, Range range, DeviceSpan<Counter> counts,
                  cudaStream_t stream) {
    refuse_unless_bytes(values, range, counts);
    if (!begin(values, counts, stream)) return;
    kLaunch(values.data(), values.size(), counts.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void no_ints(DeviceSpan<const std::int32_t> values, Range range, DeviceSpan<Counter> counts, cudaStream_t) {
    refuse_unless_bytes(values, range, counts);
}

// The most shared memory that a block can have on the current device.
std::size_t most_shared_bytes() {
    int device = 0;
    int bytes = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return static_cast<std::size_t>(bytes);
}

// Estimates, not compared with other values. With more parts, to read the values again takes longer
// than atomics on the result; with fewer values, a block takes longer to clear its counters than to
// count.
constexpr std::size_t kMostParts = 8;
constexpr std::size_t kFewestValuesForParts = std::size_t{1} << 18;

// Ints in more bins than fit in shared memory.
void launch_best_of_many_bins(DeviceSpan<const std::int32_t> values, const EqualBins& bins,
                              std::size_t most_bytes, DeviceSpan<Counter> counts, cudaStream_t stream) {
    const std::size_t most_bins = most_bytes / sizeof(unsigned);
    if (counts.size() <= kMostParts * most_bins && values.size() >= kFewestValuesForParts)
        launch_count_bins_in_parts(values.data(), values.size(), bins, most_bins, counts.data(), stream);
    else
        launch_count_bins_cached(values.data(), values.size(), bins, counts.data(), stream);
}

template <class Value>
void launch_any_bins(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts,
                     cudaStream_t stream) {
    check_arguments(values, range, counts);
    if (!begin(values, counts, stream)) return;

    const EqualBins bins(range, counts.size());
    const std::size_t most_bytes = most_shared_bytes();
    if constexpr (sizeof(Value) != 1) {
        if (slots_for<Value>(counts.size()) * sizeof(unsigned) > most_bytes) {
            launch_best_of_many_bins(values, bins, most_bytes, counts, stream);
            return;
        }
    }
    launch_count_any_bins(values.data(), values.size(), bins, most_bytes, counts.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// The versions for ints in many bins.
enum class ManyBins { kInResult, kInParts, kCached };

template <ManyBins kHow>
void launch_many_bins(DeviceSpan<const std::int32_t> values, Range range, DeviceSpan<Counter> counts,
                      cudaStream_t stream) {
    check_arguments(values, range, counts);
    if (!begin(values, counts, stream)) return;

    const EqualBins bins(range, counts.size());
    if constexpr (kHow == ManyBins::kInResult) {
        launch_count_bins_in_result(values.data(), values.size(), bins, counts.data(), stream);
    } else if constexpr (kHow == ManyBins::kInParts) {
        launch_count_bins_in_parts(values.data(), values.size(), bins, most_shared_bytes() / sizeof(unsigned),
                                   counts.data(), stream);
    } else {
        launch_count_bins_cached(values.data(), values.size(), bins, counts.data(), stream);
    }
    CUDA_CHECK_LAUNCH();
}

std::string why_not_ints(const Problem& problem) {
    return problem.value_bytes == 4 ? "" : "it counts ints; any_bins counts bytes";
}

void no_bytes(DeviceSpan<const std::uint8_t>, Range, DeviceSpan<Counter>, cudaStream_t) {
    require(false, "histogram: it counts ints; any_bins counts bytes");
}

// The values are read and the counters written. Counting is not a floating-point operation.
course::Work work(const Problem& problem) {
    const double written = static_cast<double>(problem.bins * sizeof(Counter));
    return {.bytes = static_cast<double>(problem.size * problem.value_bytes) + written, .written = written};
}

}  // namespace

std::span<const Histogram> versions() {
    const auto bytes = [](const char* name, const char* idea, LauncherOf<std::uint8_t> launch) {
        return Histogram{name, idea, {launch, no_ints}, work, why_not_bytes};
    };
    static const std::array<Histogram, 8> list{{
        bytes("global_atomics", "each value adds to the result", launch_bytes<launch_global_atomics>),
        bytes("shared_private", "a copy of the counters per block", launch_bytes<launch_shared_private>),
        bytes("coarsened_contiguous", "few blocks; a thread takes a stretch of values",
              launch_bytes<launch_coarsened_contiguous>),
        bytes("coarsened_interleaved", "few blocks; adjacent threads take adjacent values",
              launch_bytes<launch_coarsened_interleaved>),
        bytes("aggregated", "a run of equal values is counted in a register",
              launch_bytes<launch_aggregated>),
        bytes("per_warp_copies", "16-byte loads, a copy of the counters per warp",
              launch_bytes<launch_per_warp_copies>),
        bytes("lane_copies", "a copy of the counters per lane, each in its own bank",
              launch_bytes<launch_lane_copies>),
        {"any_bins",
         "lane_copies for bytes and ints, any range and any bins",
         {launch_any_bins, launch_any_bins},
         work},
    }};
    return list;
}

std::span<const Histogram> many_bins_versions() {
    const auto ints = [](const char* name, const char* idea, LauncherOf<std::int32_t> launch) {
        return Histogram{name, idea, {no_bytes, launch}, work, why_not_ints};
    };
    static const std::array<Histogram, 3> list{{
        ints("many_bins_in_result", "each value adds to the result", launch_many_bins<ManyBins::kInResult>),
        ints("many_bins_in_parts", "blocks count a part of the bins each",
             launch_many_bins<ManyBins::kInParts>),
        ints("many_bins_cached", "frequent bins are counted in shared memory",
             launch_many_bins<ManyBins::kCached>),
    }};
    return list;
}

}  // namespace day12
