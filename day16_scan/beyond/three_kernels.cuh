// Day 16, beyond: two scans in three kernels, with large tiles.
//
//   version           what is new                           what limits it
//   scan_scan_add     a thread's 20 elements in registers    4 n of traffic; add_sums: latency
//   reduce_scan_scan  first the sums alone                   3 n of traffic
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "scan.cuh"
#include "tiles.cuh"

namespace day16 {

// Idea: a block scans a tile: a thread's 20 elements are in registers, and move as 16-byte packs.
// Cost removed: most instructions per element. There is one sum for 5,120 elements.
// Still limits it: 4 n of traffic. The tiles are read and written (counters at 2^28: DRAM 84 %
// busy), and once more to add the sums: add_sums, with one element per thread, takes 63 % of the
// time and keeps DRAM only 48 % busy.
__global__ void __launch_bounds__(kBlock)
    scan_tiles(const float* in, float* out, std::size_t n, float* sums) {
    __shared__ Tile<float> tile;
    const std::size_t first = std::size_t{blockIdx.x} * kTile;
    load_tile(tile, in, n, first);
    Pack<float> items[kPacks];
    float total;
    const float before = sum_before(read_items(tile, items), total);
    write_scan<false>(tile, items, before);
    store_tile(tile, out, n, first);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

inline void launch_scan_scan_add(const float* in, float* out, std::size_t n, float* sums,
                                 cudaStream_t stream) {
    scan_sections<scan_tiles, kTile>(in, out, n, sums, stream);
}

// The first kernel of reduce_scan_scan: the sum of each tile, and nothing else is written.
__global__ void __launch_bounds__(kBlock) sum_tiles(const float* in, std::size_t n, float* sums) {
    __shared__ Tile<float> tile;
    load_tile(tile, in, n, std::size_t{blockIdx.x} * kTile);
    Pack<float> items[kPacks];
    float total;
    sum_before(read_items(tile, items), total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Idea: the first kernel only adds up each tile (sum_tiles). With the scan of these sums at hand,
// this one writes the final result at once.
// Cost removed: one of four passes over memory.
// Still limits it: 3 n of traffic, because every element is read twice. Counters at 2^28: DRAM 96 %
// busy in sum_tiles, 85 % here.
__global__ void __launch_bounds__(kBlock)
    scan_tiles_after(const float* in, float* out, std::size_t n, const float* sums) {
    __shared__ Tile<float> tile;
    const std::size_t first = std::size_t{blockIdx.x} * kTile;
    load_tile(tile, in, n, first);
    Pack<float> items[kPacks];
    float total;
    const float before = sum_before(read_items(tile, items), total);
    const float before_tile = blockIdx.x > 0 ? sums[blockIdx.x - 1] : 0.0f;
    write_scan<false>(tile, items, before_tile + before);
    store_tile(tile, out, n, first);
}

inline void launch_reduce_scan_scan(const float* in, float* out, std::size_t n, float* sums,
                                    cudaStream_t stream) {
    const std::size_t tiles = course::ceil_div<std::size_t>(n, kTile);
    const unsigned grid = course::blocks_for(tiles, 1);
    sum_tiles<<<grid, kBlock, 0, stream>>>(in, n, sums);
    launch_scan_scan_add(sums, sums, tiles, sums + tiles, stream);
    scan_tiles_after<<<grid, kBlock, 0, stream>>>(in, out, n, sums);
}

}  // namespace day16
