// Verdict: ?, line ?
// Mystery 8: "Sixteen steps, each of which divides a signal by a number that depends on its first
// element. A kernel takes a few microseconds, a step several times as long. No kernel is launched
// that is not needed, and nothing waits."
//
//   in every step: x[i] = x[i] / (1 + |x[0]|); `in` is x before the first step, `out` after the last
//
//   ./course profile day07 --only mystery8      what it does with its time
//   ./course check day07/mystery8               your verdict, and your repair
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace day07 {

__global__ void divide(const float* from, std::size_t n, float divisor, float* to) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    if (i < n) to[i] = from[i] / divisor;
}

// `work` has n elements.
inline void mystery8(const float* in, std::size_t n, float* work, float* out, cudaStream_t stream) {
    const float* from = in;
    for (int step = 0; step < 16; ++step) {
        float* const to = step % 2 == 0 ? work : out;
        float first = 0;
        CUDA_CHECK(cudaMemcpyAsync(&first, from, sizeof first, cudaMemcpyDeviceToHost, stream));
        divide<<<course::blocks_for(n, 256), 256, 0, stream>>>(from, n, 1 + std::abs(first), to);
        from = to;
    }
}

}  // namespace day07
