// Day 5, beyond: the loads of the next tiles overlap with the arithmetic on these.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "matmul_tiled.cuh"

namespace day05 {

// Idea: load the next tiles into registers before the arithmetic on these tiles starts, and store
// them in shared memory after it.
// Cost removed: waiting for global memory. The loads overlap with the multiply-adds.
// Still limits it: both operands come from shared memory (counters: 93 % busy). `tile_limit`
// measures that limit.
__global__ void multiply_tiled_prefetch(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                        DeviceMatrix<float> c) {
    __shared__ float a_tile[kTile][kTile];
    __shared__ float b_tile[kTile][kTile];
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = blockIdx.y * kTile + ty;
    const std::size_t col = blockIdx.x * kTile + tx;

    float sum = 0;
    float a_next = tx < a.cols() && row < a.rows() ? a(row, tx) : 0.0f;
    float b_next = ty < b.rows() && col < b.cols() ? b(ty, col) : 0.0f;
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += kTile) {
        a_tile[ty][tx] = a_next;
        b_tile[ty][tx] = b_next;
        __syncthreads();
        const std::size_t next = k0 + kTile;  // loaded now, used one iteration later
        a_next = next + tx < a.cols() && row < a.rows() ? a(row, next + tx) : 0.0f;
        b_next = next + ty < b.rows() && col < b.cols() ? b(next + ty, col) : 0.0f;
        for (int k = 0; k < kTile; ++k)
            sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();
    }
    if (row < c.rows() && col < c.cols()) c(row, col) = sum;
}

inline void launch_tiled_prefetch(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                  DeviceMatrix<float> c, cudaStream_t stream) {
    const dim3 block(kTile, kTile);
    multiply_tiled_prefetch<<<grid_over(c, kTile, kTile), block, 0, stream>>>(a, b, c);
}

}  // namespace day05
