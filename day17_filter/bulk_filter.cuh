// Day 17, last version: the single pass in rounds, as day 16's bulk_lookback. Needs compute
// capability 9.0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/device/pack.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/device/warp.cuh"
#include "words.cuh"

namespace day17 {

namespace ptx = course::ptx;
using course::kWarpSize;
using course::kWholeWarp;

// A warp owns neighbouring elements: kRows rows of 32 packs, lane l the l-th pack of each row.
constexpr int kBulkThreads = 512;
constexpr int kBulkWarps = kBulkThreads / kWarpSize;
constexpr int kRows = 4;
constexpr int kRow = 4 * kWarpSize;              // elements of a row
constexpr int kOfWarp = kRows * kRow;            // elements of a warp
constexpr int kBulkTile = kBulkWarps * kOfWarp;  // 8,192 elements, 32 KB
constexpr int kBefore = 4;                       // copied with a tile: elements before its first one
constexpr int kSector = 8;                       // elements of 32 bytes, which memory writes at once
constexpr unsigned kStages = 5;                  // tiles in shared memory, of the one block that fits
constexpr unsigned kAhead = 2;                   // rounds between a tile's count and its filter

using Four = course::Pack<std::int32_t, 4>;

struct Stages {
    alignas(128) std::int32_t tiles[kStages][kBefore + kBulkTile];
    alignas(128) std::int32_t staged[kBulkWarps][kOfWarp + kSector];  // what a warp keeps
    unsigned counts[kStages][kBulkThreads];                           // of each thread, by rows
    unsigned kept[kStages][kBulkWarps];                               // by each warp, of a tile
    ptx::MBarrier full[kStages];  // a phase ends when a tile's bytes have arrived
};

// The condition, a function of an element's value and of its left neighbour's.
struct ElementsBelow {
    std::int32_t threshold;
    static constexpr bool kLooksLeft = false;
    __device__ bool operator()(std::int32_t value, std::int32_t /*left*/) const { return value < threshold; }
    // A value that is not kept: it fills the tile after the last element.
    static __device__ std::int32_t behind(const std::int32_t* /*in*/, std::size_t /*n*/) { return INT32_MAX; }
};

struct FirstOfRuns {
    static constexpr bool kLooksLeft = true;
    __device__ bool operator()(std::int32_t value, std::int32_t left) const { return value != left; }
    static __device__ std::int32_t behind(const std::int32_t* in, std::size_t n) { return in[n - 1]; }
};

// The elements of a thread: a pack in each row of its warp.
struct Owned {
    Four packs[kRows];
    std::int32_t left[kRows];  // the left neighbour of each pack

    __device__ std::int32_t left_of(int row, int k) const {
        return k == 0 ? left[row] : packs[row].value[k - 1];
    }
};

// Where a thread's first pack is in a tile.
__device__ inline int first_of_packs() {
    return static_cast<int>(threadIdx.x) / kWarpSize * kOfWarp +
           static_cast<int>(threadIdx.x) % kWarpSize * 4;
}

// Reads this thread's packs from shared memory, or from global memory if the tile is the last one
// and shorter.
template <class Keep>
__device__ void read_packs(const std::int32_t* tile, const std::int32_t* in, std::size_t n, std::size_t first,
                           Four (&packs)[kRows]) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        const int i = first_of_packs() + row * kRow;
        if (first + kBulkTile <= n) {
            packs[row] = Four::load(tile + i);
            continue;
        }
#pragma unroll
        for (int k = 0; k < 4; ++k)
            packs[row].value[k] = first + i + k < n ? in[first + i + k] : Keep::behind(in, n);
    }
}

// The left neighbour of a pack is the last element of the lane to the left, and for lane 0 that of
// the last lane in the row before. For the warp's first row it is an element of another warp.
// Element 0 has none: any different value will do.
__device__ inline void find_left(const std::int32_t* tile, const std::int32_t* in, std::size_t n,
                                 std::size_t first, Owned& owned) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    std::int32_t before_row = 0;
    if (lane == 0) {
        const int i = first_of_packs();
        if (first + i == 0) {
            before_row = ~owned.packs[0].value[0];
        } else if (first + kBulkTile <= n) {
            before_row = tile[i - 1];
        } else {
            before_row = in[first + i - 1 < n ? first + i - 1 : n - 1];
        }
    }
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        const std::int32_t last = owned.packs[row].value[3];
        const std::int32_t of_left_lane = __shfl_sync(kWholeWarp, last, (lane + kWarpSize - 1) % kWarpSize);
        owned.left[row] = lane == 0 ? before_row : of_left_lane;
        before_row = of_left_lane;
    }
}

// How many elements each pack of a thread keeps: a byte for each row. A warp keeps at most 128 of a
// row, so the bytes of its lanes can be added up all at once.
template <class Keep>
__device__ unsigned count_by_row(const Owned& owned, Keep keep) {
    unsigned counts = 0;
#pragma unroll
    for (int row = 0; row < kRows; ++row)
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (keep(owned.packs[row].value[k], owned.left_of(row, k))) counts += 1U << 8 * row;
    return counts;
}

__device__ inline unsigned count_of_row(unsigned counts, int row) {
    return counts >> 8 * row & 0xff;
}

// Writes what the warp keeps to staged[place] and up, in order: by rows, then by lanes, then as in
// the pack. `mine`: what count_by_row() found.
template <class Keep>
__device__ void stage_owned(const Owned& owned, Keep keep, unsigned mine, unsigned place,
                            std::int32_t* staged) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    unsigned inclusive = mine;  // of all four rows
    for (int stride = 1; stride < kWarpSize; stride *= 2) {
        const unsigned left = __shfl_up_sync(kWholeWarp, inclusive, stride);
        if (lane >= stride) inclusive += left;
    }
    const unsigned of_warp = __shfl_sync(kWholeWarp, inclusive, kWarpSize - 1);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        unsigned mine_begins = place + count_of_row(inclusive - mine, row);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const std::int32_t value = owned.packs[row].value[k];
            if (keep(value, owned.left_of(row, k))) staged[mine_begins++] = value;
        }
        place += count_of_row(of_warp, row);
    }
}

// The warp copies staged[i] to line[i] for `begin` <= i < `end`, 16 bytes at a time where all four
// elements are in that range. The results are not needed again soon: __stcs leaves the L2 cache to
// the input.
__device__ inline void store_line(const std::int32_t* staged, unsigned begin, unsigned end,
                                  std::int32_t* line) {
    for (unsigned first = threadIdx.x % kWarpSize * 4; first < end; first += kRow) {
        if (begin <= first && first + 4 <= end) {
            __stcs(reinterpret_cast<uint4*>(line + first), *reinterpret_cast<const uint4*>(staged + first));
        } else {
            for (unsigned i = first; i < first + 4; ++i)
                if (begin <= i && i < end) __stcs(line + i, staged[i]);
        }
    }
}

// The sum of the values of all warps. `before` gets the sum of those before this warp.
__device__ inline unsigned sum_of_warps(const unsigned (&values)[kBulkWarps], unsigned& before) {
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    unsigned sum = 0;
#pragma unroll
    for (int w = 0; w < kBulkWarps; ++w) {
        if (w == warp) before = sum;
        sum += values[w];
    }
    return sum;
}

// Idea: G blocks, as many as the GPU holds at once. In round r block b has tile r G + b. It
// publishes the tile's count as soon as the tile is in shared memory, and filters the tile kAhead
// rounds later. By then the counts of the G tiles before it have usually been published. Each of G
// threads reads one of them, and the block adds them to the count of all tiles before its previous
// one.
// Cost removed: waiting. The look-back is one load per thread, and bulk copies of later tiles are
// always in flight. A warp stages and stores what it keeps by itself, so a round has one barrier.
// Still limits it: latency. Each step of a round waits for the one before. Two blocks per SM, with
// tiles half as long, were slower.
//
// Blocks wait for counts of all others, so all must run at the same time: a cooperative launch.
// `in` is 16-byte aligned, and gridDim.x <= kBulkThreads.
template <class Keep>
__global__ void __launch_bounds__(kBulkThreads)
    bulk_filter(const std::int32_t* in, std::size_t n, Keep keep, std::int32_t* out, Count* count,
                Progress* progress, volatile Word* words) {
    extern __shared__ __align__(128) unsigned char memory[];
    Stages& stages = *reinterpret_cast<Stages*>(memory);
    __shared__ unsigned found[2][kBulkWarps];
    __shared__ unsigned shared_launch;
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    const std::size_t blocks = gridDim.x;
    const std::size_t tiles = (n + kBulkTile - 1) / kBulkTile;
    const auto is_whole = [&](std::size_t tile) { return (tile + 1) * kBulkTile <= n; };

    // The last tile may be shorter. It is not copied, but read from global memory.
    const auto begin_copy = [&](unsigned round) {
        const std::size_t tile = round * blocks + blockIdx.x;
        if (!is_whole(tile)) return;
        const unsigned stage = round % kStages;
        const int before = Keep::kLooksLeft && tile > 0 ? kBefore : 0;
        const auto bytes = static_cast<unsigned>((before + kBulkTile) * sizeof(std::int32_t));
        ptx::mbarrier_arrive_expect(&stages.full[stage], bytes);
        ptx::bulk_load(stages.tiles[stage] + kBefore - before, in + tile * kBulkTile - before, bytes,
                       &stages.full[stage]);
    };
    const auto read_owned = [&](std::size_t tile, unsigned stage) {
        Owned owned;
        read_packs<Keep>(stages.tiles[stage] + kBefore, in, n, tile * kBulkTile, owned.packs);
        if constexpr (Keep::kLooksLeft)
            find_left(stages.tiles[stage] + kBefore, in, n, tile * kBulkTile, owned);
        return owned;
    };

    if (threadIdx.x == 0) {
        for (ptx::MBarrier& full : stages.full)
            ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init();
        for (unsigned round = 0; round < kStages; ++round)
            begin_copy(round);
        shared_launch = draw_ticket(progress).launch;
    }
    __syncthreads();
    const unsigned launch = shared_launch;

    Count kept_before = 0;  // by all tiles before the one that this block filters
    Word word = 0;          // of the tile that this thread looks at
    unsigned by_warps_before = 0;
    for (unsigned round = 0;; ++round) {
        // 1. The count of this round's tile, of each thread and of each warp.
        const std::size_t tile = round * blocks + blockIdx.x;
        const unsigned stage = round % kStages;
        if (tile < tiles) {
            if (is_whole(tile)) ptx::mbarrier_wait(&stages.full[stage], round / kStages % 2);
            const unsigned mine = count_by_row(read_owned(tile, stage), keep);
            stages.counts[stage][threadIdx.x] = mine;
            const unsigned of_warp = __reduce_add_sync(kWholeWarp, mine);
            unsigned kept = 0;
            for (int row = 0; row < kRows; ++row)
                kept += count_of_row(of_warp, row);
            if (lane == 0) stages.kept[stage][warp] = kept;
        }

        // 2. The look-back of the tile of kAhead rounds ago: at the tiles from old - G to old - 1.
        const std::size_t old = tile - kAhead * blocks;
        const unsigned old_stage = (round - kAhead) % kStages;
        const bool has_old = round >= kAhead && old < tiles;
        if (has_old) {
            const bool looks = threadIdx.x < blocks && old + threadIdx.x >= blocks;
            while (looks && state_of(word, launch) == kEmpty)
                word = words[old - blocks + threadIdx.x];
            const auto kept = looks ? static_cast<unsigned>(count_of(word)) : 0;
            const unsigned sum = __reduce_add_sync(kWholeWarp, kept);
            if (lane == 0) found[round % 2][warp] = sum;
        }
        __syncthreads();  // the counts are complete; all threads have finished the round before
        if (threadIdx.x == 0) {
            if (tile < tiles)
                words[tile] = make_word(launch, kSum, sum_of_warps(stages.kept[stage], by_warps_before));
            if (round > kAhead) begin_copy(round - kAhead - 1 + kStages);
        }
        if (round < kAhead) continue;
        if (!has_old) break;
        // The word for the next round is loaded early; usually it has been published already.
        word = threadIdx.x < blocks && old + blocks < tiles ? words[old + threadIdx.x] : 0;

        // 3. The filter of that tile, by warps. Staged words are in the order that they will have
        //    in a sector.
        kept_before += sum_of_warps(found[round % 2], by_warps_before);
        const unsigned by_tile = sum_of_warps(stages.kept[old_stage], by_warps_before);
        const unsigned kept = stages.kept[old_stage][warp];
        if (kept > 0) {
            std::int32_t* const place = out + kept_before + by_warps_before;
            const auto begin = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(place) /
                                                     sizeof(std::int32_t) % kSector);
            std::int32_t* const staged = stages.staged[warp];
            stage_owned(read_owned(old, old_stage), keep, stages.counts[old_stage][threadIdx.x], begin,
                        staged);
            __syncwarp();
            store_line(staged, begin, begin + kept, place - begin);
            __syncwarp();
        }
        if (threadIdx.x == 0 && old + 1 == tiles) *count = kept_before + by_tile;
    }
    if (threadIdx.x == 0) finish(progress, words, launch);
}

}  // namespace day17
