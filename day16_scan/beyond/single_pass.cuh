// Day 16, beyond: one pass over memory. Tiles are in tiles.cuh; Board, draw() and the
// look-back are in look_back.cuh.
#pragma once

#include "common/device/grid.hpp"
#include "look_back.cuh"

namespace day16 {

// Idea: one kernel. Each tile waits for the sum of all before it, adds its own, and passes it on.
// Cost removed: a pass over memory: 2 n of traffic, which is the least possible.
// Still limits it: the chain. The sum goes from tile to tile through L2. On an H200 that takes
// about 0.3 us per tile: 62 us for the 205 tiles of 2^20 elements. Counters: 84 % of the time of
// its warps passes at the barrier behind which one thread waits.
__global__ void __launch_bounds__(kBlock) domino(const float* in, float* out, std::size_t n, Board board) {
    __shared__ Tile<float> tile;
    __shared__ Draw drawn;
    __shared__ float before_tile;
    if (threadIdx.x == 0) drawn = draw(board, gridDim.x);
    __syncthreads();
    const auto [number, launch] = drawn;
    const std::size_t first = std::size_t{number} * kTile;
    load_tile(tile, in, n, first);
    Pack<float> items[kPacks];
    float total;
    const float before = sum_before(read_items(tile, items), total);
    if (threadIdx.x == 0) {
        Word word = make_word(launch, kPrefix, 0.0f);
        if (number > 0) {
            do
                word = load_relaxed(&board.words[number - 1]);
            while (state_of(word, launch) != kPrefix);
        }
        before_tile = value_of<float>(word);
        store_relaxed(&board.words[number], make_word(launch, kPrefix, before_tile + total));
    }
    __syncthreads();
    write_scan<false>(tile, items, before_tile + before);
    store_tile(tile, out, n, first);
}

inline void launch_domino(const float* in, float* out, std::size_t n, Board board, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(course::ceil_div<std::size_t>(n, kTile), 1);
    domino<<<grid, kBlock, 0, stream>>>(in, out, n, board);
}

// Idea: a tile publishes its own sum at once. Later tiles add up these sums, back to the
// nearest tile that has published its prefix.
// Cost removed: the chain. A block waits until earlier tiles have been loaded and added up, not for
// their look-back.
// Still limits it: while a block looks back, it has no loads in flight. Counters at 2^28: 61 % of
// the time of its warps at barriers, DRAM 59 % busy.
template <class T, bool kExclusive>
__global__ void __launch_bounds__(kBlock)
    decoupled_lookback(const T* in, T* out, std::size_t n, Board board) {
    __shared__ Tile<T> tile;
    __shared__ Draw drawn;
    __shared__ T before_tile;
    if (threadIdx.x == 0) drawn = draw(board, gridDim.x);
    __syncthreads();
    const auto [number, launch] = drawn;
    const std::size_t first = std::size_t{number} * kTile;
    load_tile(tile, in, n, first);
    Pack<T> items[kPacks];
    T total;
    const T before = sum_before(read_items(tile, items), total);
    if (threadIdx.x < kWarpSize) {
        const T found = publish_and_look_back(board.words, number, launch, total);
        if (threadIdx.x == 0) before_tile = found;
    }
    __syncthreads();
    write_scan<kExclusive>(tile, items, static_cast<T>(before_tile + before));
    store_tile(tile, out, n, first);
}

template <class T, bool kExclusive>
void launch_decoupled_lookback(const T* in, T* out, std::size_t n, Board board, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(course::ceil_div<std::size_t>(n, kTile), 1);
    decoupled_lookback<T, kExclusive><<<grid, kBlock, 0, stream>>>(in, out, n, board);
}

}  // namespace day16
