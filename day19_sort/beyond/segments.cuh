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

constexpr int kSegmentBlock = 256;

// How segments of each kind are sorted, and the most keys that they have.
constexpr std::size_t kTinySegment = kWarpSize;  // with others, by one warp
constexpr int kSmallEach = 8;                    // by a warp: so many keys of a lane
constexpr std::size_t kSmallSegment = kWarpSize * kSmallEach;
constexpr int kShortEach = 20;  // by a block: so many keys of a thread
constexpr int kMediumEach = 40;
constexpr std::size_t kShortSegment = kSweepBlock * kShortEach;
constexpr std::size_t kMediumSegment = kSweepBlock * kMediumEach;

// Numbers of segments of one kind, in any order.
struct SegmentList {
    std::uint32_t* numbers;
    unsigned* count;
    std::size_t more;  // the segments have more keys than this,
    std::size_t most;  // and at most so many
};
constexpr int kSegmentLists = 3;  // small, short, medium

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

struct SegmentsByKind {
    SegmentList lists[kSegmentLists];
    LongSegments longs;
};

// Blocks of the kernels that take segments from a list: enough that the GPU can choose among them,
// but few enough that those without work cost little.
inline unsigned blocks_for_list(std::size_t most) {
    const std::size_t enough = std::size_t{64} * course::multiprocessors();
    return static_cast<unsigned>(std::clamp<std::size_t>(most, 1, enough));
}

// --- Tiny segments -------------------------------------------------------------------------------

// Puts segment s on the list of its kind if it is not tiny. All lanes of the warp call it; lanes
// without a segment have length 0. One atomic of the warp per list.
__device__ inline void list_by_kind(std::size_t s, std::size_t first, std::size_t length,
                                    const SegmentsByKind& kinds) {
    if (!__any_sync(kWholeWarp, length > kTinySegment)) return;
    const unsigned lane = threadIdx.x % kWarpSize;
#pragma unroll
    for (int k = 0; k < kSegmentLists; ++k) {
        const SegmentList& list = kinds.lists[k];
        const bool is_listed = length > list.more && length <= list.most;
        const unsigned listed = __ballot_sync(kWholeWarp, is_listed);
        if (listed == 0) continue;
        const int leader = __ffs(static_cast<int>(listed)) - 1;
        unsigned at = 0;
        if (static_cast<int>(lane) == leader)
            at = atomicAdd(list.count, static_cast<unsigned>(__popc(listed)));
        at = __shfl_sync(kWholeWarp, at, leader) + __popc(listed & ((1U << lane) - 1));
        if (is_listed) list.numbers[at] = static_cast<std::uint32_t>(s);
    }
    if (length <= kMediumSegment) return;
    // One atomic gives a long segment its number in the list and its place among the keys, so both
    // are in the same order, whichever that is.
    const Count before = atomicAdd(kinds.longs.word, Count{1} << kListBits | length);
    kinds.longs.list[before >> kListBits] = {first, before & ((Count{1} << kListBits) - 1)};
    atomicAdd(kinds.longs.keys, length);
}

// Each lane of the warp has a segment of `length` keys, at most 32, from `first` on. The keys of
// all 32 segments are numbered from 0, and the warp sorts a row of whole segments after the other,
// of up to 32 keys. A lane of a row has one key, and looks at the others of its segment by turns.
// The number of keys that go before its own is the key's place.
__device__ inline void sort_tiny_segments_of_lanes(const Segments& segments, std::size_t first, int length) {
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    int end = length;  // of the lane's segment
#pragma unroll
    for (int distance = 1; distance < kWarpSize; distance *= 2) {
        const int before = __shfl_up_sync(kWholeWarp, end, distance);
        if (lane >= distance) end += before;
    }
    const int begin = end - length;
    const int all = __shfl_sync(kWholeWarp, end, kWarpSize - 1);

    for (int row = 0; row < all;) {
        const int fitting = __popc(__ballot_sync(kWholeWarp, end <= row + kWarpSize));
        const int next_row = __shfl_sync(kWholeWarp, end, fitting - 1);
        // The segment of this lane's key: the last that begins at the key or before.
        const int number = row + lane;
        int owner = 0;
#pragma unroll
        for (int step = kWarpSize / 2; step > 0; step /= 2)
            if (__shfl_sync(kWholeWarp, begin, owner + step) <= number) owner += step;
        const int its_begin = __shfl_sync(kWholeWarp, begin, owner);
        const int its_length = __shfl_sync(kWholeWarp, length, owner);
        const std::size_t its_first = __shfl_sync(kWholeWarp, first, owner);

        const bool has_key = number < next_row;
        const int size = has_key ? its_length : 0;
        const int own = number - its_begin;  // the key's place in the input
        const std::uint32_t key = has_key ? segments.code.encode(segments.in[its_first + own]) : 0;
        int place = 0;
        int other = own;
        for (int turn = 1; __any_sync(kWholeWarp, turn < size); ++turn) {
            other = other + 1 == its_length ? 0 : other + 1;
            const std::uint32_t theirs =
                __shfl_sync(kWholeWarp, key, (its_begin - row + other) & (kWarpSize - 1));
            // Equal keys stay in their order.
            if (turn < size && (other < own ? theirs <= key : theirs < key)) ++place;
        }
        if (has_key) segments.out[its_first + place] = segments.code.decode(key);
        row = next_row;
    }
}

// Idea: each lane of a warp examines a segment. The warp sorts those of at most 32 keys at once,
// many together, and puts the others on lists, from which the following kernels take them.
// Cost removed: a warp for each segment, however tiny, and further looks at all offsets.
// Still limits it: comparisons, as many as the longest segment of a row has keys.
__global__ void __launch_bounds__(kSegmentBlock) sort_tiny_segments(Segments segments, SegmentsByKind kinds) {
    const std::size_t lane = threadIdx.x % kWarpSize;
    const std::size_t step = std::size_t{gridDim.x} * kSegmentBlock;
    // All lanes of a warp stay together.
    for (std::size_t of_warp = std::size_t{blockIdx.x} * kSegmentBlock + threadIdx.x - lane;
         of_warp < segments.count; of_warp += step) {
        const std::size_t s = of_warp + lane;
        const std::size_t first = s < segments.count ? segments.offsets[s] : 0;
        const std::size_t length = s < segments.count ? segments.offsets[s + 1] - first : 0;
        list_by_kind(s, first, length, kinds);
        sort_tiny_segments_of_lanes(segments, first, length <= kTinySegment ? static_cast<int>(length) : 0);
    }
}

inline void launch_sort_tiny_segments(const Segments& segments, const SegmentsByKind& kinds,
                                      cudaStream_t stream) {
    const std::size_t blocks = course::ceil_div<std::size_t>(segments.count, kSegmentBlock);
    const auto grid = static_cast<unsigned>(std::min<std::size_t>(blocks, INT32_MAX));
    sort_tiny_segments<<<grid, kSegmentBlock, 0, stream>>>(segments, kinds);
}

// --- Segments of a warp --------------------------------------------------------------------------

// Idea: a warp sorts a segment of at most 256 keys. Each lane has a key of each row of 32, and
// reads all others one after the other. The number of keys that go before its own is the key's
// place.
// Cost removed: a block, four passes and their barriers, for a handful of keys.
// Still limits it: comparisons, as many as the square of the length.
__global__ void __launch_bounds__(kSegmentBlock) sort_segments_by_warps(Segments segments, SegmentList list) {
    const std::size_t thread = std::size_t{blockIdx.x} * kSegmentBlock + threadIdx.x;
    const std::size_t step = std::size_t{gridDim.x} * kSegmentBlock / kWarpSize;
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    const std::size_t count = *list.count;
    for (std::size_t turn = thread / kWarpSize; turn < count; turn += step) {
        const std::size_t s = list.numbers[turn];
        const std::size_t first = segments.offsets[s];
        const int size = static_cast<int>(segments.offsets[s + 1] - first);
        std::uint32_t keys[kSmallEach];
        int places[kSmallEach] = {};
#pragma unroll
        for (int row = 0; row < kSmallEach; ++row) {
            const int i = row * kWarpSize + lane;
            keys[row] = i < size ? segments.code.encode(segments.in[first + i]) : ~0U;
        }
#pragma unroll
        for (int other = 0; other < kSmallEach; ++other) {
            const int in_row = size - other * kWarpSize;
            for (int l = 0; l < in_row && l < kWarpSize; ++l) {
                const std::uint32_t theirs = __shfl_sync(kWholeWarp, keys[other], l);
#pragma unroll
                for (int row = 0; row < kSmallEach; ++row) {
                    if (row * kWarpSize >= size) break;
                    // Equal keys stay in their order.
                    const bool stands_before = other < row || (other == row && l < lane);
                    if (stands_before ? theirs <= keys[row] : theirs < keys[row]) ++places[row];
                }
            }
        }
#pragma unroll
        for (int row = 0; row < kSmallEach; ++row)
            if (row * kWarpSize + lane < size)
                segments.out[first + places[row]] = segments.code.decode(keys[row]);
    }
}

// n: the number of all keys.
inline void launch_sort_segments_by_warps(const Segments& segments, const SegmentList& list, std::size_t n,
                                          cudaStream_t stream) {
    constexpr std::size_t kOfABlock = kSegmentBlock / kWarpSize;
    const std::size_t most = course::ceil_div<std::size_t>(n / (list.more + 1), kOfABlock);
    sort_segments_by_warps<<<blocks_for_list(most), kSegmentBlock, 0, stream>>>(segments, list);
}

// --- Segments of a block -------------------------------------------------------------------------

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
template <int kEach>
__global__ void __launch_bounds__(kSweepBlock, 80 / kEach)
    sort_segments_by_blocks(Segments segments, SegmentList list) {
    extern __shared__ __align__(16) unsigned char shared[];
    auto& tile = *reinterpret_cast<SegmentTile<kEach>*>(shared);
    const std::size_t count = *list.count;
    for (std::size_t i = blockIdx.x; i < count; i += gridDim.x)
        sort_segment(segments, list.numbers[i], tile);
}

template <int kEach>
void launch_sort_segments_by_blocks(const Segments& segments, const SegmentList& list, std::size_t n,
                                    cudaStream_t stream) {
    course::launch(sort_segments_by_blocks<kEach>,
                   {.grid = blocks_for_list(n / (list.more + 1)),
                    .block = kSweepBlock,
                    .shared_bytes = sizeof(SegmentTile<kEach>),
                    .stream = stream},
                   segments, list);
}

// --- Longer segments -----------------------------------------------------------------------------

// The grid of the following kernels: not more blocks than keep any GPU busy.
inline unsigned long_segments_grid(std::size_t threads) {
    return static_cast<unsigned>(
        std::min<std::size_t>(course::ceil_div<std::size_t>(threads, kSegmentBlock), 4096));
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
