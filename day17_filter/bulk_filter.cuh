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
constexpr int kBulkTile = kBulkThreads * kRows * 4;  // 8,192 elements, 32 KB
constexpr unsigned kStages = 6;                      // tiles in shared memory, of the one block that fits
constexpr unsigned kAhead = 3;                       // rounds between a tile's count and its filter

using Four = course::Pack<std::int32_t, 4>;

struct Stages {
    alignas(128) std::int32_t tiles[kStages][kBulkTile];
    alignas(128) std::int32_t staged[kBulkTile + kWarpSize];  // what a tile keeps
    unsigned kept[kStages][kBulkWarps];                       // by each warp, of a tile
    ptx::MBarrier full[kStages];                              // a phase ends when a tile's bytes have arrived
};

// A pack of the last tile, which is shorter. Elements from n on are no smaller than any threshold.
__device__ inline Four load_pack(const std::int32_t* in, std::size_t n, std::size_t first) {
    Four pack;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        pack.value[k] = first + k < n ? in[first + k] : INT32_MAX;
    return pack;
}

// How many elements each pack of a thread keeps: a byte for each row. A warp keeps at most 128 of a
// row, so the bytes of its lanes can be added up all at once.
__device__ inline unsigned count_by_row(const Four (&packs)[kRows], std::int32_t threshold) {
    unsigned counts = 0;
#pragma unroll
    for (int row = 0; row < kRows; ++row)
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (packs[row].value[k] < threshold) counts += 1U << 8 * row;
    return counts;
}

__device__ inline unsigned count_of_row(unsigned counts, int row) {
    return counts >> 8 * row & 0xff;
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

// Writes what the warp keeps to staged[place] and up, in order: by rows, then by lanes, then as in
// the pack.
__device__ inline void stage_packs(const Four (&packs)[kRows], std::int32_t threshold, unsigned place,
                                   std::int32_t* staged) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const unsigned mine = count_by_row(packs, threshold);
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
        for (const std::int32_t value : packs[row].value)
            if (value < threshold) staged[mine_begins++] = value;
        place += count_of_row(of_warp, row);
    }
}

// Copies staged[i] to line[i], for `begin` <= i < `end`, by 16 bytes where all four are meant. The
// results are not needed again soon: __stcs leaves the L2 cache to the input.
__device__ inline void store_line(const std::int32_t* staged, unsigned begin, unsigned end,
                                  std::int32_t* line) {
    for (unsigned first = threadIdx.x * 4; first < end; first += kBulkThreads * 4) {
        if (begin <= first && first + 4 <= end) {
            __stcs(reinterpret_cast<uint4*>(line + first), *reinterpret_cast<const uint4*>(staged + first));
        } else {
            for (unsigned i = first; i < first + 4; ++i)
                if (begin <= i && i < end) __stcs(line + i, staged[i]);
        }
    }
}

// Idea: G blocks, as many as the GPU holds at once. In round r block b has tile r G + b. It
// publishes the tile's count as soon as the tile is in shared memory, and filters it kAhead rounds
// later. By then the counts of the G tiles before have long been published. A thread for each reads
// them, and the block adds them to the count up to its own last tile.
// Cost removed: waiting. The look-back is one load, and later tiles are on their way to shared
// memory by bulk copies all the time.
// Still limits it: memory bandwidth.
//
// Blocks wait for counts of all others, so all must run at the same time: a cooperative launch.
// `in` is 16-byte aligned, and gridDim.x <= kBulkThreads.
__global__ void __launch_bounds__(kBulkThreads)
    bulk_filter(const std::int32_t* in, std::size_t n, std::int32_t threshold, std::int32_t* out,
                Count* count, Progress* progress, volatile Word* words) {
    extern __shared__ __align__(128) unsigned char memory[];
    Stages& stages = *reinterpret_cast<Stages*>(memory);
    __shared__ unsigned found[kBulkWarps];
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
        ptx::mbarrier_arrive_expect(&stages.full[stage], sizeof(stages.tiles[stage]));
        ptx::bulk_load(stages.tiles[stage], in + tile * kBulkTile, sizeof(stages.tiles[stage]),
                       &stages.full[stage]);
    };
    const auto read_packs = [&](std::size_t tile, unsigned stage, Four(&packs)[kRows]) {
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
            const int i = ((warp * kRows + row) * kWarpSize + lane) * 4;
            packs[row] =
                is_whole(tile) ? Four::load(&stages.tiles[stage][i]) : load_pack(in, n, tile * kBulkTile + i);
        }
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
    Four packs[kRows];
    for (unsigned round = 0;; ++round) {
        // 1. The count of this round's tile, first of each warp's part.
        const std::size_t tile = round * blocks + blockIdx.x;
        const unsigned stage = round % kStages;
        if (tile < tiles) {
            if (is_whole(tile)) ptx::mbarrier_wait(&stages.full[stage], round / kStages % 2);
            read_packs(tile, stage, packs);
            const unsigned rows = __reduce_add_sync(kWholeWarp, count_by_row(packs, threshold));
            unsigned kept = 0;
            for (int row = 0; row < kRows; ++row)
                kept += count_of_row(rows, row);
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
            if (lane == 0) found[warp] = sum;
        }
        __syncthreads();  // the counts are complete; all threads have stored what was staged
        unsigned by_warps_before = 0;
        if (threadIdx.x == 0 && tile < tiles)
            words[tile] = make_word(launch, kSum, sum_of_warps(stages.kept[stage], by_warps_before));
        if (round < kAhead) continue;
        if (!has_old) break;
        // The word for the next round is loaded early; most times it is there already.
        word = threadIdx.x < blocks && old + blocks < tiles ? words[old + threadIdx.x] : 0;

        // 3. The filter of that tile, staged as it stands in a line of 128 bytes.
        kept_before += sum_of_warps(found, by_warps_before);
        const unsigned kept = sum_of_warps(stages.kept[old_stage], by_warps_before);
        const auto address = reinterpret_cast<std::uintptr_t>(out + kept_before);
        const auto begin = static_cast<unsigned>(address / sizeof(std::int32_t) % kWarpSize);
        read_packs(old, old_stage, packs);
        stage_packs(packs, threshold, begin + by_warps_before, stages.staged);
        __syncthreads();  // all is staged, and nobody reads the tile any more
        if (threadIdx.x == 0) begin_copy(round - kAhead + kStages);
        store_line(stages.staged, begin, begin + kept,
                   out + static_cast<std::ptrdiff_t>(kept_before) - begin);
        if (threadIdx.x == 0 && old + 1 == tiles) *count = kept_before + kept;
    }
    if (threadIdx.x == 0) finish(progress, words, launch);
}

}  // namespace day17
