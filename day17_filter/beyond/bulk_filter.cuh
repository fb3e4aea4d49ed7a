// Day 17, beyond: the single pass in rounds, as day 16's bulk_lookback. Needs compute capability
// 9.0.
//
//   version      what is new                               what limits it
//   bulk_filter  tiles are counted rounds ahead            latency of a round; at 2^28, L2
//   bulk_unique  the same, for the first of each run       L2; latency of a round's steps
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/ptx_hopper.cuh"
#include "owned.cuh"
#include "words.cuh"

namespace day17 {

namespace ptx = course::ptx;

constexpr int kBefore = 4;       // copied with a tile: elements before its first one
constexpr int kSector = 8;       // elements of 32 bytes, which memory writes at once
constexpr unsigned kStages = 5;  // tiles in shared memory, of the one block that fits
constexpr unsigned kAhead = 2;   // rounds between a tile's count and its filter

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
    // A value that is not kept, which fills the tile after the last element.
    static __device__ std::int32_t behind(const std::int32_t* /*in*/, std::size_t /*n*/) { return INT32_MAX; }
};

struct FirstOfRuns {
    static constexpr bool kLooksLeft = true;
    __device__ bool operator()(std::int32_t value, std::int32_t left) const { return value != left; }
    static __device__ std::int32_t behind(const std::int32_t* in, std::size_t n) { return in[n - 1]; }
};

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

// Idea: as many blocks as the GPU holds at once, G of them. In round r block b has tile r G + b. It
// publishes the tile's count as soon as the tile is in shared memory, and filters the tile kAhead
// rounds later. By then the counts of the G tiles before it have usually been published. Each of G
// threads reads one of them, and the block adds them to the count of all tiles before its previous
// one.
// Cost removed: waiting. The look-back is one load per thread, and bulk copies of later tiles are
// always in flight. A warp stages and stores what it keeps by itself, so a round has one barrier.
// Still limits it: at 2^20 elements latency, because each step of a round waits for the one before.
// At 2^28 L2 (counters: 80 % busy, DRAM 64 %, issue slots 58 %). Two blocks per SM, with tiles half
// as long, were slower.
//
// Blocks wait for counts of all others, so all must run at the same time, by a cooperative launch.
// `in` is 16-byte aligned, and gridDim.x <= kBulkThreads.
template <class Keep>
__global__ void __launch_bounds__(kBulkThreads)
    bulk_filter(const std::int32_t* in, std::size_t n, Keep keep, std::int32_t* out, Count* count,
                Progress* progress, Word* words) {
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

        // 2. The look-back of the tile of kAhead rounds ago: at tiles old - blocks to old - 1.
        const std::size_t old = tile - kAhead * blocks;
        const unsigned old_stage = (round - kAhead) % kStages;
        const bool has_old = round >= kAhead && old < tiles;
        if (has_old) {
            const bool looks = threadIdx.x < blocks && old + threadIdx.x >= blocks;
            while (looks && state_of(word, launch) == kEmpty)
                word = load_relaxed(&words[old - blocks + threadIdx.x]);
            const auto kept = looks ? static_cast<unsigned>(count_of(word)) : 0;
            const unsigned sum = __reduce_add_sync(kWholeWarp, kept);
            if (lane == 0) found[round % 2][warp] = sum;
        }
        __syncthreads();  // the counts are complete; all threads have finished the round before
        if (threadIdx.x == 0) {
            if (tile < tiles)
                store_relaxed(&words[tile],
                              make_word(launch, kSum, sum_of_warps(stages.kept[stage], by_warps_before)));
            if (round > kAhead) begin_copy(round - kAhead - 1 + kStages);
        }
        if (round < kAhead) continue;
        if (!has_old) break;
        // The word for the next round is loaded early; usually it has been published already.
        word = threadIdx.x < blocks && old + blocks < tiles ? load_relaxed(&words[old + threadIdx.x]) : 0;

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
        }
        if (threadIdx.x == 0 && old + 1 == tiles) *count = kept_before + by_tile;
    }
    if (threadIdx.x == 0) finish(progress, words, launch);
}

// As many blocks as the GPU holds at once, but at most one per tile, and one per thread of a block:
// each thread looks at the word of one block.
template <class Keep>
void launch_rounds(const std::int32_t* in, std::size_t n, Keep keep, std::int32_t* out, Count* count,
                   Progress* progress, Word* words, cudaStream_t stream) {
    constexpr auto kKernel = bulk_filter<Keep>;
    course::allow_shared_bytes(kKernel, sizeof(Stages));
    const std::size_t tiles = course::ceil_div<std::size_t>(n, kBulkTile);
    const std::size_t resident = course::resident_blocks(kKernel, kBulkThreads, sizeof(Stages));
    const auto grid = static_cast<unsigned>(std::min({tiles, resident, std::size_t{kBulkThreads}}));
    void* arguments[] = {&in, &n, &keep, &out, &count, &progress, &words};
    CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kKernel), grid, kBulkThreads,
                                           arguments, sizeof(Stages), stream));
}

}  // namespace day17
