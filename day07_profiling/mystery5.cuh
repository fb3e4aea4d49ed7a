// Verdict: tail, line 33
// Mystery 5, repaired: asteroids are followed.
//
// Cause: the tail. 133 blocks of equal length are one more than an H200 has SMs. One SM gets two,
// and takes twice as long as all others, which are idle in the second half.
// Repair: many short blocks, of 256 elements each. What is left at the end is short, too.
// Limited by issue slots: 24 sines for each element.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>

#include "common/device/grid.hpp"

namespace day07 {

// Each iteration halves the error, at least.
__device__ inline float eccentric_anomaly(float mean) {
    float e = mean;
    for (int iteration = 0; iteration < 24; ++iteration)
        e = mean + 0.5f * sinf(e);
    return e;
}

__global__ void follow_asteroids(const float* in, std::size_t all, float* out) {
    const std::size_t i = std::size_t{blockIdx.x} * 256 + threadIdx.x;
    if (i < all) out[i] = eccentric_anomaly(in[i]);
}

inline void mystery5(const float* in, std::size_t n, float* /*work*/, float* out, cudaStream_t stream) {
    follow_asteroids<<<course::blocks_for(133 * n, 256), 256, 0, stream>>>(in, 133 * n, out);
}

}  // namespace day07
