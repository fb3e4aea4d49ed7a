// Day 19, beyond: many segments, each sorted by itself. Keys have 32 bits.
#pragma once

#include <algorithm>

#include "beyond/onesweep.cuh"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"

namespace day19 {

// The keys of all segments. Segment s has the keys offsets[s] to offsets[s + 1] - 1.
struct Segments {
    const std::uint32_t* in;
    std::uint32_t* out;
    const std::uint64_t* offsets;
    std::size_t count;
    KeyCode<std::uint32_t> code;
};

// --- Segments of a warp --------------------------------------------------------------------------

constexpr int kSegmentBlock = 256;

constexpr int kTinyEach = 8;  // keys of a lane
constexpr std::size_t kTinySegment = kWarpSize * kTinyEach;

// Idea: a warp sorts a segment of at most 256 keys. Each lane has a key of each row of 32, and
// reads all others one after the other. The number of keys that go before its own is the key's
// place.
// Cost removed: a block, four passes and their barriers, for a handful of keys.
// Still limits it: comparisons, as many as the square of the length.
__global__ void __launch_bounds__(kSegmentBlock) sort_segments_by_warps(Segments segments) {
    const std::size_t thread = std::size_t{blockIdx.x} * kSegmentBlock + threadIdx.x;
    const std::size_t step = std::size_t{gridDim.x} * kSegmentBlock / kWarpSize;
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    for (std::size_t s = thread / kWarpSize; s < segments.count; s += step) {
        const std::size_t first = segments.offsets[s];
        const std::size_t all = segments.offsets[s + 1] - first;
        if (all > kTinySegment) continue;
        const int size = static_cast<int>(all);
        std::uint32_t keys[kTinyEach];
        int places[kTinyEach] = {};
#pragma unroll
        for (int row = 0; row < kTinyEach; ++row) {
            const int i = row * kWarpSize + lane;
            keys[row] = i < size ? segments.code.encode(segments.in[first + i]) : ~0U;
        }
#pragma unroll
        for (int other = 0; other < kTinyEach; ++other) {
            const int in_row = size - other * kWarpSize;
            for (int l = 0; l < in_row && l < kWarpSize; ++l) {
                const std::uint32_t theirs = __shfl_sync(kWholeWarp, keys[other], l);
#pragma unroll
                for (int row = 0; row < kTinyEach; ++row) {
                    if (row * kWarpSize >= size) break;
                    // Equal keys stay in their order.
                    const bool stands_before = other < row || (other == row && l < lane);
                    if (stands_before ? theirs <= keys[row] : theirs < keys[row]) ++places[row];
                }
            }
        }
#pragma unroll
        for (int row = 0; row < kTinyEach; ++row)
            if (row * kWarpSize + lane < size)
                segments.out[first + places[row]] = segments.code.decode(keys[row]);
    }
}

inline void launch_sort_segments_by_warps(const Segments& segments, cudaStream_t stream) {
    const std::size_t blocks = course::ceil_div<std::size_t>(segments.count, kSegmentBlock / kWarpSize);
    const auto grid = static_cast<unsigned>(std::min<std::size_t>(blocks, INT32_MAX));
    sort_segments_by_warps<<<grid, kSegmentBlock, 0, stream>>>(segments);
}

// --- Segments of a block -------------------------------------------------------------------------

// Keys of a thread, for short segments and for those of medium length.
constexpr int kShortEach = 20;
constexpr int kMediumEach = 40;
constexpr std::size_t kShortSegment = kSweepBlock * kShortEach;
constexpr std::size_t kMediumSegment = kSweepBlock * kMediumEach;

template <int kEach>
struct SegmentTile {
    std::uint32_t keys[kSweepBlock * kEach];
    unsigned counters[kSweepWarps][kBins];
    unsigned sums[kSweepWarps];
};

// A block sorts segment s, of at most kSweepBlock * kEach keys.
template <int kEach>
__device__ void sort_segment(const Segments& segments, std::size_t s, SegmentTile<kEach>& tile) {
    const std::size_t first = segments.offsets[s];
    const auto size = static_cast<unsigned>(segments.offsets[s + 1] - first);
    const unsigned warp = threadIdx.x / kWarpSize;
    const unsigned lane = threadIdx.x % kWarpSize;
    const int each = static_cast<int>((size + kSweepBlock * kGroup - 1) / (kSweepBlock * kGroup)) * kGroup;
    // A warp has consecutive keys, as in a tile of onesweep.
    const auto place_of_key = [&](int k) { return (warp * each + k) * kWarpSize + lane; };

    std::uint32_t keys[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        keys[k] = k < each && place_of_key(k) < size
                      ? segments.code.encode(segments.in[first + place_of_key(k)])
                      : ~0U;
    for (int pass = 0; pass < kBytes<std::uint32_t>; ++pass) {
        clear_counters(tile);
        __syncthreads();  // also: all threads have their keys
        count_bytes_of_warps(keys, pass, tile, each);
        __syncthreads();
        place_warps(scan_bins(sum_of_warps(tile), tile.sums), tile);
        __syncthreads();
        unsigned places[kEach];
        stage_keys(keys, pass, tile, places, each);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kEach; ++k)
            if (k < each) keys[k] = tile.keys[place_of_key(k)];
    }
    // Missing keys had the largest code, and were after all others.
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        if (k < each && place_of_key(k) < size)
            segments.out[first + place_of_key(k)] = segments.code.decode(keys[k]);
}

// Idea: a block sorts a segment by all four digits in shared memory, as onesweep sorts a tile by
// one. A segment that does not fill the tile gets fewer keys per thread.
// Cost removed: three of four passes through memory. Because each segment is sorted by itself, no
// pass sorts by the number of the segment, either.
// Still limits it: the ranking, as in onesweep, and four barriers for each digit.
//
// Segments of more than kMore keys, and at most kSweepBlock * kEach.
template <int kEach, std::size_t kMore>
__global__ void __launch_bounds__(kSweepBlock, 80 / kEach) sort_segments_by_blocks(Segments segments) {
    extern __shared__ __align__(16) unsigned char shared[];
    auto& tile = *reinterpret_cast<SegmentTile<kEach>*>(shared);
    const unsigned lane = threadIdx.x % kWarpSize;
    // Each lane examines another segment, so that those of other lengths are skipped together.
    for (std::size_t looked = 0; looked * gridDim.x + blockIdx.x < segments.count; looked += kWarpSize) {
        const std::size_t mine = (looked + lane) * gridDim.x + blockIdx.x;
        const std::size_t length =
            mine < segments.count ? segments.offsets[mine + 1] - segments.offsets[mine] : 0;
        unsigned left = __ballot_sync(kWholeWarp, length > kMore && length <= kSweepBlock * kEach);
        for (; left != 0; left &= left - 1)
            sort_segment(segments, (looked + __ffs(static_cast<int>(left)) - 1) * gridDim.x + blockIdx.x,
                         tile);
    }
}

template <int kEach, std::size_t kMore>
void launch_sort_segments_by_blocks(const Segments& segments, cudaStream_t stream) {
    // Enough blocks that the GPU can choose among them, but few enough that those without work cost
    // little.
    const auto grid = static_cast<unsigned>(
        std::min<std::size_t>(segments.count, std::size_t{64} * course::multiprocessors()));
    course::launch(
        sort_segments_by_blocks<kEach, kMore>,
        {.grid = grid, .block = kSweepBlock, .shared_bytes = sizeof(SegmentTile<kEach>), .stream = stream},
        segments);
}

// --- Longer segments -----------------------------------------------------------------------------

// All longer segments are sorted together, by onesweep, with keys of 64 bits: the segment's number,
// then its key's code. A list holds these segments.
struct LongSegment {
    std::size_t first;  // in the keys of all segments
    std::size_t begin;  // in those of the long ones
};
constexpr int kListBits = 40;  // lower bits of the list's word: keys so far. Upper bits: segments

struct LongSegments {
    LongSegment* list;
    Count* word;
    Count* keys;  // of all of them
};

// The grid of the following kernels: not more blocks than keep any GPU busy.
inline unsigned long_segments_grid(std::size_t threads) {
    return static_cast<unsigned>(
        std::min<std::size_t>(course::ceil_div<std::size_t>(threads, kSegmentBlock), 4096));
}

// One thread for each segment. One atomic gives it its number in the list and its place among the
// keys, so both are in the same order, whichever that is.
__global__ void __launch_bounds__(kSegmentBlock) list_long_segments(Segments segments, LongSegments longs) {
    const std::size_t step = std::size_t{gridDim.x} * kSegmentBlock;
    for (std::size_t s = std::size_t{blockIdx.x} * kSegmentBlock + threadIdx.x; s < segments.count;
         s += step) {
        const std::size_t first = segments.offsets[s];
        const std::size_t size = segments.offsets[s + 1] - first;
        if (size <= kMediumSegment) continue;
        const Count before = atomicAdd(longs.word, Count{1} << kListBits | size);
        longs.list[before >> kListBits] = {first, before & ((Count{1} << kListBits) - 1)};
        atomicAdd(longs.keys, size);
    }
}

inline void launch_list_long_segments(const Segments& segments, const LongSegments& longs,
                                      cudaStream_t stream) {
    list_long_segments<<<long_segments_grid(segments.count), kSegmentBlock, 0, stream>>>(segments, longs);
}

// The long segment to which key i of those of all long ones belongs: the last that starts at i or
// before.
__device__ inline std::size_t long_segment_of(std::size_t i, const LongSegments& longs) {
    std::size_t low = 0;
    std::size_t high = *longs.word >> kListBits;
    while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (longs.list[middle].begin <= i ? low : high) = middle;
    }
    return low;
}

__global__ void __launch_bounds__(kSegmentBlock)
    join_long_segments(Segments segments, LongSegments longs, std::uint64_t* joined) {
    const std::size_t n = *longs.keys;
    const std::size_t step = std::size_t{gridDim.x} * kSegmentBlock;
    for (std::size_t i = std::size_t{blockIdx.x} * kSegmentBlock + threadIdx.x; i < n; i += step) {
        const std::size_t s = long_segment_of(i, longs);
        const std::size_t place = longs.list[s].first + (i - longs.list[s].begin);
        joined[i] = std::uint64_t{s} << 32 | segments.code.encode(segments.in[place]);
    }
}

// n: the number of all keys, as the host does not know how many are in long segments.
inline void launch_join_long_segments(const Segments& segments, const LongSegments& longs,
                                      std::uint64_t* joined, std::size_t n, cudaStream_t stream) {
    join_long_segments<<<long_segments_grid(n), kSegmentBlock, 0, stream>>>(segments, longs, joined);
}

__global__ void __launch_bounds__(kSegmentBlock)
    split_long_segments(Segments segments, LongSegments longs, const std::uint64_t* sorted) {
    const std::size_t n = *longs.keys;
    const std::size_t step = std::size_t{gridDim.x} * kSegmentBlock;
    for (std::size_t i = std::size_t{blockIdx.x} * kSegmentBlock + threadIdx.x; i < n; i += step) {
        const LongSegment& segment = longs.list[sorted[i] >> 32];
        segments.out[segment.first + (i - segment.begin)] =
            segments.code.decode(static_cast<std::uint32_t>(sorted[i]));
    }
}

inline void launch_split_long_segments(const Segments& segments, const LongSegments& longs,
                                       const std::uint64_t* sorted, std::size_t n, cudaStream_t stream) {
    split_long_segments<<<long_segments_grid(n), kSegmentBlock, 0, stream>>>(segments, longs, sorted);
}

}  // namespace day19
