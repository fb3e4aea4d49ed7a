// Day 25, beyond: K^T for the ladder, whose products read B row by row.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "attention.cuh"

namespace day25 {

constexpr int kTransposeTile = 32;
constexpr int kTransposeRows = 8;

// Idea: a 32 x 32 tile is transposed in shared memory (day 6), so that loads and stores go along
// rows.
// Cost removed: scattered stores, 4 useful bytes in a sector of 32.
// Still limits it: with few keys, latency. Counters for 8 heads of 2,048 keys, 5.2 us: ALU 56 %
// busy, DRAM 17 %.
__global__ void transpose_tiles(DeviceMatrix<const float> in, DeviceMatrix<float> out) {
    __shared__ float tile[kTransposeTile][kTransposeTile + 1];
    const std::size_t tiles_across = course::ceil_div<std::size_t>(in.cols(), kTransposeTile);
    const std::size_t row0 = blockIdx.x / tiles_across * kTransposeTile;
    const std::size_t col0 = blockIdx.x % tiles_across * kTransposeTile;
    const unsigned x = threadIdx.x;
    for (unsigned y = threadIdx.y; y < kTransposeTile; y += kTransposeRows)
        if (row0 + y < in.rows() && col0 + x < in.cols()) tile[y][x] = in(row0 + y, col0 + x);
    __syncthreads();
    for (unsigned y = threadIdx.y; y < kTransposeTile; y += kTransposeRows)
        if (col0 + y < out.rows() && row0 + x < out.cols()) out(col0 + y, row0 + x) = tile[x][y];
}

inline void launch_transpose_tiles(DeviceMatrix<const float> in, DeviceMatrix<float> out,
                                   cudaStream_t stream) {
    const std::size_t tiles = course::ceil_div<std::size_t>(in.rows(), kTransposeTile) *
                              course::ceil_div<std::size_t>(in.cols(), kTransposeTile);
    const unsigned grid = course::blocks_for(tiles, 1);
    transpose_tiles<<<grid, dim3(kTransposeTile, kTransposeRows), 0, stream>>>(in, out);
}

}  // namespace day25
