// Verdict: synchronising copy, line 33
// Mystery 8, repaired: a signal is divided by its first element.
//
// Cause: copies that synchronise. cudaMemcpyAsync to a plain variable of the host returns when the
// copy is done, because the host's memory is not pinned. So the host waits for the kernel before,
// and the GPU then waits for the next launch.
// Repair: the number stays on the GPU. Each thread loads it, from L2 or L1.
// Limited by sixteen launches of a few microseconds each.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>

#include "common/device/grid.hpp"

namespace day07 {

__global__ void divide(const float* from, std::size_t n, float* to) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    if (i < n) to[i] = from[i] / (1 + std::abs(from[0]));
}

// `work` has n elements.
inline void mystery8(const float* in, std::size_t n, float* work, float* out, cudaStream_t stream) {
    const float* from = in;
    for (int step = 0; step < 16; ++step) {
        float* const to = step % 2 == 0 ? work : out;
        divide<<<course::blocks_for(n, 256), 256, 0, stream>>>(from, n, to);
        from = to;
    }
}

}  // namespace day07
