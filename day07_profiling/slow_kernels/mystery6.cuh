// Verdict: ?, line ?
// Mystery 6: "How many of 16 million numbers are positive? Reading them takes microseconds, the
// kernel milliseconds. If hardly any number is positive, it is fast."
//
//   *out = how many of in[0] to in[n - 1] are positive; n is at most 2^24, so a float can count them
//
//   ./course profile day07 --only mystery6      what it does with its time
//   ./course check day07/mystery6               your verdict, and your repair
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace day07 {

__global__ void count_positive(const float* in, std::size_t n, float* out) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    if (i < n && in[i] > 0) atomicAdd(out, 1.0f);
}

inline void mystery6(const float* in, std::size_t n, float* /*work*/, float* out, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(out, 0, sizeof(float), stream));
    count_positive<<<course::blocks_for(n, 256), 256, 0, stream>>>(in, n, out);
}

}  // namespace day07
