// Day 5, beyond: tiles whose size the host chooses when the program runs.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "matmul_tiled.cuh"

namespace day05 {

// Idea: dynamic shared memory. The launcher queries how large a tile can be on the device, so one
// binary fits every GPU.
// Cost removed: a tile size that is fixed before the GPU is known.
// Still limits it: shared memory (counters: 77 % busy). With an unknown tile size the compiler does
// not know that rows of a_tile are aligned, so it loads each element of A by itself: 2.07
// wavefronts per multiply-add of a warp, in `tiled_static` 1.57.
__global__ void multiply_tiled_dynamic(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                       DeviceMatrix<float> c) {
    extern __shared__ float tiles[];
    const unsigned tile = blockDim.x;
    float* const a_tile = tiles;                // tile x tile, row after row
    float* const b_tile = tiles + tile * tile;  // tile x tile
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = blockIdx.y * tile + ty;
    const std::size_t col = blockIdx.x * tile + tx;

    float sum = 0;
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += tile) {
        a_tile[ty * tile + tx] = k0 + tx < a.cols() && row < a.rows() ? a(row, k0 + tx) : 0.0f;
        b_tile[ty * tile + tx] = k0 + ty < b.rows() && col < b.cols() ? b(k0 + ty, col) : 0.0f;
        __syncthreads();
        for (unsigned k = 0; k < tile; ++k)
            sum += a_tile[ty * tile + k] * b_tile[k * tile + tx];
        __syncthreads();
    }
    if (row < c.rows() && col < c.cols()) c(row, col) = sum;
}

// tile: rows and columns of a tile. The tiles of A and B are the block's dynamic shared memory.
inline void launch_tiled_dynamic(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                 DeviceMatrix<float> c, unsigned tile, cudaStream_t stream) {
    const dim3 block(tile, tile);
    const std::size_t shared_bytes = 2 * tile * tile * sizeof(float);
    multiply_tiled_dynamic<<<grid_over(c, tile, tile), block, shared_bytes, stream>>>(a, b, c);
}

}  // namespace day05
