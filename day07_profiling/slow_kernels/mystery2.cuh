// Verdict: ?, line ?
// Mystery 2: "The running sums of rows of 32 numbers. A row is loaded and stored once, by adjacent
// threads, and the sums are made in shared memory, which is fast. A copy of the same matrix takes
// about a fifth of the time."
//
//   out[32 r + c] = in[32 r] + ... + in[32 r + c]; there are n rows
//
//   ./course profile day07 --only mystery2      what it does with its time
//   ./course check day07/mystery2               your verdict, and your repair
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"

namespace day07 {

// A block has 128 rows, and a thread for each.
__global__ void running_sums(const float* in, std::size_t n, float* out) {
    __shared__ float tile[128][32];
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
