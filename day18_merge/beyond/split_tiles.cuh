// Day 18, beyond: where the tiles of bulk_merge (bulk_merge.cuh) start in a.
#pragma once

#include "beyond/co_rank_by_warp.cuh"
#include "common/device/grid.hpp"

namespace day18 {

constexpr int kSplitBlock = 2 * kWarpSize;
constexpr std::size_t kNear = 1024;  // elements: how far a split may be from where it is expected

// Idea: like `partition` (merge_path.cuh), but a block first finds where its first tile starts and
// its last one ends, by a warp each. The splits in between are expected at equal distances, so each
// search starts there.
// Cost removed: 27 steps for each split, scattered over the arrays.
// Still limits it: latency. Each step waits for the one before (counters: 86 % of the time of its
// warps is spent on loads).
//
// It also resets the ticket from which the blocks of bulk_merge draw tiles. They do not wait for
// that, but start at once with tiles whose splits they find themselves.
__global__ void __launch_bounds__(kSplitBlock)
    split_tiles(const Key* a, std::size_t m, const Key* b, std::size_t n, std::size_t tile_size,
                std::size_t tiles, std::size_t* splits, unsigned* ticket) {
    __shared__ std::size_t ends[2];
    cudaTriggerProgrammaticLaunchCompletion();  // bulk_merge may start
    const std::size_t first = std::size_t{blockIdx.x} * kSplitBlock;
    const std::size_t last = smaller<std::size_t>(first + kSplitBlock, tiles);
    const auto place_of = [&](std::size_t tile) { return smaller(tile * tile_size, m + n); };
    const unsigned warp = threadIdx.x / kWarpSize;
    const std::size_t found = co_rank_by_warp(place_of(warp == 0 ? first : last), a, m, b, n);
    if (threadIdx.x % kWarpSize == 0) ends[warp] = found;
    if (blockIdx.x == 0 && threadIdx.x == 0) *ticket = 0;
    __syncthreads();

    const std::size_t tile = first + threadIdx.x;
    if (tile >= last) return;
    if (tile + 1 == tiles) splits[tiles] = ends[1];
    const std::size_t k = place_of(tile);
    const std::size_t past = k - place_of(first);  // elements of the output before this tile
    const std::size_t ahead = place_of(last) - k;  // and from here on, in this block's tiles
    // From one position in the output to a later one, the split grows by at most their distance.
    std::size_t low = ends[1] > ahead && ends[1] - ahead > ends[0] ? ends[1] - ahead : ends[0];
    std::size_t high = smaller(ends[0] + past, ends[1]);
    const auto goes_first = [&](std::size_t i) { return a[i] <= b[k - 1 - i]; };
    const std::size_t expected = ends[0] + (ends[1] - ends[0]) * threadIdx.x / (last - first);
    // expected - kNear may wrap round zero. The bounds below then make it high - 1, a valid test,
    // too.
    std::size_t places[] = {expected - kNear, expected, expected + kNear};
    while (low < high) {
        bool yes[3];  // the loads of the three tests are independent
#pragma unroll
        for (int p = 0; p < 3; ++p) {
            if (places[p] < low) places[p] = low;
            if (places[p] >= high) places[p] = high - 1;
            yes[p] = goes_first(places[p]);
        }
#pragma unroll
        for (int p = 0; p < 3; ++p) {
            if (yes[p]) {
                low = places[p] + 1;
            } else {
                high = smaller(high, places[p]);
            }
        }
        // The next tests are at the ends of the first three quarters of what is left.
#pragma unroll
        for (int p = 0; p < 3; ++p)
            places[p] = low + (high - low) * (p + 1) / 4;
    }
    splits[tile] = low;
}

inline void launch_split_tiles(const Key* a, std::size_t m, const Key* b, std::size_t n,
                               std::size_t tile_size, std::size_t* splits, unsigned* ticket,
                               cudaStream_t stream) {
    const std::size_t tiles = course::ceil_div(m + n, tile_size);
    const unsigned grid = course::blocks_for(tiles, kSplitBlock);
    split_tiles<<<grid, kSplitBlock, 0, stream>>>(a, m, b, n, tile_size, tiles, splits, ticket);
}

}  // namespace day18
