// Verdict: atomics, line 22
// Mystery 6, repaired: positive numbers are counted.
//
// Cause: atomics to one address. They are carried out one after the other, in one place in L2, and
// half of all threads issue one.
// Repair: a block counts first. __syncthreads_count is a barrier which also tells every thread for
// how many of the block's threads the condition holds. One thread then adds that number.
// On an H200, both kernels take about 1.8 ns per atomic, of which this one has one for every 256
// elements, unless a thread takes several. By its counters, warps wait at the barrier for the loads
// of others.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace day07 {

__global__ void count_positive(const float* in, std::size_t n, float* out) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    const int count = __syncthreads_count(i < n && in[i] > 0);
    if (threadIdx.x == 0) atomicAdd(out, static_cast<float>(count));
}

inline void mystery6(const float* in, std::size_t n, float* /*work*/, float* out, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(out, 0, sizeof(float), stream));
    count_positive<<<course::blocks_for(n, 256), 256, 0, stream>>>(in, n, out);
}

}  // namespace day07
