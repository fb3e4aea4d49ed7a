// Day 20, beyond: functions of one element, out[i] = f(in[i]).
//
// Every function reads 4 and writes 4 bytes per element, so all but the exact GELU are
// memory-bound. Fusing such a function with the kernel before or after it saves all of its time.
//
//   relu        x < 0 ? 0 : x
//   sigmoid     1 / (1 + exp(-x))
//   tanh        tanh(x)
//   gelu        x Phi(x), Phi the normal distribution: x erfc(-x / sqrt(2)) / 2
//   gelu_tanh   x (1 + tanh(t)) / 2, t = sqrt(2 / pi) (x + 0.044715 x^3)
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/pack.cuh"

namespace day20 {

// NaN stays NaN. fmaxf(x, 0) would make it 0.
__device__ inline float relu(float x) {
    return x < 0 ? 0 : x;
}

// exp() of a number <= 0 cannot overflow, so small results keep their accuracy.
__device__ inline float sigmoid(float x) {
    const float e = expf(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e);
}

__device__ inline float hyperbolic_tangent(float x) {
    return tanhf(x);
}

// erfc: for negative x the sum 1 + erf would cancel and lose its accuracy.
__device__ inline float gelu(float x) {
    constexpr float kInverseSqrt2 = 0.707106781f;
    return 0.5f * x * erfcf(-x * kInverseSqrt2);
}

constexpr double kGeluCubic = 0.044715;
constexpr double kGeluScale = 1.5957691216057308;  // 2 sqrt(2 / pi)

// (1 + tanh(t)) / 2 = sigmoid(2 t), without the cancellation of 1 + tanh(t).
__device__ inline float gelu_tanh(float x) {
    const float cubic = x * (1 + static_cast<float>(kGeluCubic) * x * x);
    return x * sigmoid(static_cast<float>(kGeluScale) * cubic);
}

// Idea: the function is a template parameter, so the compiler inlines it. A thread has a pack of
// kWidth adjacent elements: 4, or 1 where `in` or `out` is not 16-byte aligned.
// Cost removed: three of four load and store instructions.
// Still limits it: L2 on its way to memory (counters at 2^24: L2 93 % busy, DRAM 74 %; for the
// exact GELU 82 % and 62 %, with issue slots 73 % busy).
template <float (*kFunction)(float), int kWidth>
__global__ void apply(const float* in, float* out, std::size_t n) {
    using Values = course::Pack<float, kWidth>;
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::size_t packs = n / kWidth;
    if (i < packs) {
        Values x = Values::load(in + kWidth * i);
#pragma unroll
        for (int k = 0; k < kWidth; ++k)
            x.value[k] = kFunction(x.value[k]);
        x.store(out + kWidth * i);
    }
    // The last n % kWidth elements belong to no pack; the first threads take one each.
    const std::size_t tail = kWidth * packs + i;
    if (tail < n) out[tail] = kFunction(in[tail]);
}

// n > 0. Four elements per thread where both addresses allow it.
template <float (*kFunction)(float)>
void launch_apply(const float* in, float* out, std::size_t n, cudaStream_t stream) {
    constexpr int kThreads = 256;
    const bool packs = course::is_aligned(in, 16) && course::is_aligned(out, 16);
    const std::size_t threads = packs ? course::ceil_div<std::size_t>(n, 4) : n;
    const auto kernel = packs ? apply<kFunction, 4> : apply<kFunction, 1>;
    kernel<<<course::blocks_for(threads, kThreads), kThreads, 0, stream>>>(in, out, n);
}

}  // namespace day20
