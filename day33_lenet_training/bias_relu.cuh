// Day 33: the bias with the activation, and their gradients. Read pooling.cuh first.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/block_reduce.cuh"
#include "common/device/pack.cuh"
#include "pooling.cuh"

namespace day33 {

__device__ inline float relu(float value) {
    return value < 0 ? 0.0f : value;  // NaN stays
}

// kPack: 4 where planes are whole float4, else 1. `packs` of them are all of y.
template <int kPack>
__global__ void add_bias_relu(float* y, const float* bias, int packs, int k, int packs_of_plane) {
    const int i = thread_of_grid();
    if (i >= packs) return;
    const float b = bias[i / packs_of_plane % k];
    float* const at = y + static_cast<std::ptrdiff_t>(i) * kPack;
    auto values = course::Pack<float, kPack>::load(at);
#pragma unroll
    for (float& value : values.value)
        value = relu(value + b);
    values.store(at);
}

// Idea: a block per plane computes its dz and its part of the bias's gradient in one pass.
// Cost removed: a second pass over dz.
// Still limits it: memory bandwidth.
__global__ void relu_gradient_planes(const float* y, const float* dy, float* dz, float* sums, int plane) {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(blockIdx.x) * plane;
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < plane; i += kPoolThreads) {
        // A NaN of y passes the gradient on, too.
        const float gradient = y[first + i] == 0 ? 0.0f : dy[first + i];
        dz[first + i] = gradient;
        sum += gradient;
    }
    sum = course::block_reduce<kPoolThreads>(sum, course::Sum{});
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// The sum of each channel over the images, in order.
__global__ void add_planes(const float* sums, float* dbias, int n, int k) {
    const int channel = thread_of_grid();
    if (channel >= k) return;
    float sum = 0;
    for (int image = 0; image < n; ++image)
        sum += sums[image * k + channel];
    dbias[channel] = sum;
}

}  // namespace day33
