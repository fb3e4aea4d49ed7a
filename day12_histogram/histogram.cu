// Day 12's launchers: argument checks, the size of the grid, the list of versions. The kernels are
// in histogram.cuh and any_bins.cuh.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "any_bins.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "histogram.cuh"
#include "histogram.hpp"

namespace day12 {
namespace {

using course::DeviceSpan;
using course::require;

constexpr std::size_t kMostBins = std::size_t{1} << 31;
constexpr std::size_t kLaneBytes = 100 * 1024;  // shared memory that a block of any_bins spends on copies

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

// The versions that count bytes in 256 bins. kValues: values per thread, of as many threads as
// there is work for. kResident: no more blocks than the GPU can hold at once.
template <auto kKernel, int kThreads, int kValues, bool kResident>
void launch_bytes(DeviceSpan<const std::uint8_t> values, Range range, DeviceSpan<Counter> counts,
                  cudaStream_t stream) {
    refuse_unless_bytes(values, range, counts);
    if (!begin(values, counts, stream)) return;
    unsigned blocks = course::blocks_for(course::ceil_div<std::size_t>(values.size(), kValues), kThreads);
    if (kResident) {
        // A counter of a block has 32 bits, so there must be enough blocks that none can have 2^32
        // values.
        const unsigned fewest = course::blocks_for(values.size(), 1 << 30);
        blocks = std::min(blocks, std::max(fewest, course::resident_blocks(kKernel, kThreads)));
    }
    kKernel<<<blocks, kThreads, 0, stream>>>(values.data(), values.size(), counts.data());
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

template <class Value>
void launch_any_bins(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts,
                     cudaStream_t stream) {
    check_arguments(values, range, counts);
    if (!begin(values, counts, stream)) return;

    const EqualBins bins(range, counts.size());
    const std::size_t slot_count = sizeof(Value) == 1 ? 256 : counts.size() + 1;
    const std::size_t slot_bytes = slot_count * sizeof(unsigned);  // of one copy
    const std::size_t most_bytes = most_shared_bytes();
    if (slot_bytes > most_bytes) {
        const unsigned blocks = course::blocks_for(values.size(), kBlock);
        count_any_bins_in_global<<<blocks, kBlock, 0, stream>>>(values.data(), values.size(), bins,
                                                                counts.data());
        CUDA_CHECK_LAUNCH();
        return;
    }
    // The largest power of two of copies that fits, at least one and at most one per lane.
    const std::size_t fit = std::min(kLaneBytes, most_bytes) / slot_bytes;
    const Slots<Value> slots{
        .bins = bins,
        .count = static_cast<unsigned>(slot_count),
        .copies = static_cast<unsigned>(std::bit_floor(std::clamp<std::size_t>(fit, 1, kWarpSize)))};
    const std::size_t shared = slot_bytes * slots.copies;
    course::allow_shared_bytes(count_any_bins<Value>, shared);

    constexpr std::size_t kValues = sizeof(Words) / sizeof(Value);
    const unsigned blocks = course::blocks_for(course::ceil_div(values.size(), kValues), kLaneBlock);
    const unsigned fewest = course::blocks_for(values.size(), 1 << 30);
    const unsigned at_once = course::resident_blocks(count_any_bins<Value>, kLaneBlock, shared);
    course::launch(count_any_bins<Value>,
                   {std::min(blocks, std::max(fewest, at_once)), kLaneBlock, shared, stream}, values.data(),
                   values.size(), slots, counts.data());
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
    constexpr int kPack = sizeof(Words);  // bytes of one load
    static const std::array<Histogram, 8> list{{
        bytes("global_atomics", "each value adds to the result",
              launch_bytes<count_global_atomics, kBlock, 1, false>),
        bytes("shared_private", "a copy of the counters per block",
              launch_bytes<count_shared_private, kBlock, 1, false>),
        bytes("coarsened_contiguous", "few blocks; a thread takes a stretch of values",
              launch_bytes<count_coarsened_contiguous, kBlock, 1, true>),
        bytes("coarsened_interleaved", "few blocks; neighbouring threads take neighbouring values",
              launch_bytes<count_coarsened_interleaved, kBlock, 1, true>),
        bytes("aggregated", "a run of equal values is counted in a register",
              launch_bytes<count_aggregated, kBlock, kPack, true>),
        bytes("per_warp_copies", "16-byte loads, a copy of the counters per warp",
              launch_bytes<count_per_warp_copies, kBlock, kPack, true>),
        bytes("lane_copies", "a copy of the counters per lane, each in its own bank",
              launch_bytes<count_lane_copies, kLaneBlock, kPack, true>),
        {"any_bins",
         "lane_copies for bytes and ints, any range and any bins",
         {launch_any_bins, launch_any_bins},
         work},
    }};
    return list;
}

}  // namespace day12
