// Verdict: ?, line ?
// Mystery 4: "The eighth power of small matrices, a thread for each. A matrix is read once, squared
// three times in registers, and stored once. We chose the largest blocks, because many threads hide
// latency. At the GPU's bandwidth it should take a sixth of the time, but it moves more bytes."
//
//   element e of matrix i is at e n + i, so all accesses are coalesced; a matrix is 8 x 8
//
//   ./course profile day07 --only mystery4      what it does with its time
//   ./course check day07/mystery4               your verdict, and your repair
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"

namespace day07 {

constexpr int kMatrixBlock = 1024;

__global__ void __launch_bounds__(kMatrixBlock) eighth_power(const float* in, std::size_t n, float* out) {
    const std::size_t i = std::size_t{blockIdx.x} * kMatrixBlock + threadIdx.x;
    if (i >= n) return;
    float a[8][8];
#pragma unroll
    for (int e = 0; e < 64; ++e)
        a[e / 8][e % 8] = in[e * n + i];
#pragma unroll
    for (int squaring = 0; squaring < 3; ++squaring) {
        float product[8][8] = {};
#pragma unroll
        for (int e = 0; e < 64; ++e)
#pragma unroll
            for (int k = 0; k < 8; ++k)
                product[e / 8][e % 8] += a[e / 8][k] * a[k][e % 8];
#pragma unroll
        for (int e = 0; e < 64; ++e)
            a[e / 8][e % 8] = product[e / 8][e % 8];
    }
#pragma unroll
    for (int e = 0; e < 64; ++e)
        out[e * n + i] = a[e / 8][e % 8];
}

inline void mystery4(const float* in, std::size_t n, float* /*work*/, float* out, cudaStream_t stream) {
    eighth_power<<<course::blocks_for(n, kMatrixBlock), kMatrixBlock, 0, stream>>>(in, n, out);
}

}  // namespace day07
