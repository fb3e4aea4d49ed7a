// Verdict: ?, line ?
// Mystery 3: "We add up the readings of 32,768 sensors, a thread for each. Adjacent threads read
// adjacent floats, and nothing is read twice. Yet memory is mostly idle."
//
//   out[c] = in[c] + in[32768 + c] + ...; there are n rows of 32,768 readings
//
//   ./course profile day07 --only mystery3      what it does with its time
//   ./course check day07/mystery3               your verdict, and your repair
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day07 {

__global__ void add_readings(const float* in, std::size_t n, float* out) {
    const unsigned col = blockIdx.x * 256 + threadIdx.x;
    out[col] = 0;
    for (std::size_t row = 0; row < n; ++row)
        out[col] += in[row * 32768 + col];
}

inline void mystery3(const float* in, std::size_t n, float* /*work*/, float* out, cudaStream_t stream) {
    add_readings<<<32768 / 256, 256, 0, stream>>>(in, n, out);
}

}  // namespace day07
