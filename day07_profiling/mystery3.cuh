// Verdict: one load in flight, line 21
// Mystery 3, repaired: the readings of sensors are added up.
//
// Cause: one load in flight. `out` may be the same memory as `in`, as far as the compiler knows, so
// it has to store each sum before it may load the next reading. The store waits for the addition,
// the addition for the load: a thread waits for each load before it issues the next one.
// Repair: the sum is in a register. Then the compiler issues 16 loads before the first addition.
// Limited by the bandwidth of DRAM, as far as 8 warps per SM can ask for it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day07 {

__global__ void add_readings(const float* in, std::size_t n, float* out) {
    const unsigned col = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;
#pragma unroll 16
    for (std::size_t row = 0; row < n; ++row)
        sum += in[row * 32768 + col];
    out[col] = sum;
}

inline void mystery3(const float* in, std::size_t n, float* /*work*/, float* out, cudaStream_t stream) {
    add_readings<<<32768 / 256, 256, 0, stream>>>(in, n, out);
}

}  // namespace day07
