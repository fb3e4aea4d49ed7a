// Sums over the lanes of a warp and the warps of a block: besides the versions, two kernels that
// show one step each.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "reduction.cuh"

namespace day15 {

// The sum of 32 values, one per lane, in lane 0. The values of the other lanes have no meaning.
// Each step adds the value in lane + `distance`, and halves the number of lanes that matter.
// warp_sum, with __shfl_xor_sync, gives the sum to every lane at the same cost.
__device__ inline float sum_in_lane_0(float value) {
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
        value += __shfl_down_sync(kWholeWarp, value, distance);
    return value;
}

// out[w] is the sum of elements 32 w to 32 w + 31 of `in`, where w counts the warps of the grid.
// Elements from n on do not exist.
__global__ void sum_by_warps(const float* in, std::size_t n, float* out) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    // Lanes without an element take part in the shuffle, too, because the mask includes all 32.
    const float sum = sum_in_lane_0(i < n ? in[i] : 0.0f);
    if (i < n && i % kWarpSize == 0) out[i / kWarpSize] = sum;
}

// Repeated calls of block_sum with nothing in between: out[k] is the sum of elements k * kBlock to
// (k + 1) * kBlock - 1.
__global__ void sum_by_one_block(const float* in, std::size_t sums, float* out) {
    for (std::size_t k = 0; k < sums; ++k) {
        const float sum = block_sum(in[k * kBlock + threadIdx.x]);
        if (threadIdx.x == 0) out[k] = sum;
    }
}

}  // namespace day15
