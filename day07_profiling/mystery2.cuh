// Verdict: bank conflicts, line 29
// Mystery 2, repaired: running sums of rows.
//
// Cause: bank conflicts. A row of the tile has 32 words, so the 32 rows that a warp's threads add
// up begin in the same bank, and each access takes 32 wavefronts.
// Repair: a row of 33 words. Adjacent rows begin in adjacent banks.
// Limited by the bandwidth of DRAM.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"

namespace day07 {

// A block has 128 rows, and a thread for each.
__global__ void running_sums(const float* in, std::size_t n, float* out) {
    __shared__ float tile[128][33];
    const std::size_t first = std::size_t{blockIdx.x} * 128 * 32;
    for (unsigned k = threadIdx.x; k < 128 * 32; k += 128)
        tile[k / 32][k % 32] = first + k < n * 32 ? in[first + k] : 0;
    __syncthreads();
    float sum = 0;
    for (unsigned col = 0; col < 32; ++col) {
        sum += tile[threadIdx.x][col];
        tile[threadIdx.x][col] = sum;
    }
    __syncthreads();
    for (unsigned k = threadIdx.x; k < 128 * 32; k += 128)
        if (first + k < n * 32) out[first + k] = tile[k / 32][k % 32];
}

inline void mystery2(const float* in, std::size_t n, float* /*work*/, float* out, cudaStream_t stream) {
    running_sums<<<course::blocks_for(n, 128), 128, 0, stream>>>(in, n, out);
}

}  // namespace day07
