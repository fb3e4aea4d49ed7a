// Tensor-core fragments with 16-bit elements, __half or __nv_bfloat16: pairs of elements in
// registers, and the MMA of fragments. Day 40 explains the layout.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstring>

#include "common/device/ptx.cuh"

namespace course {

__device__ inline __half2 rounded(float first, float second, __half) {
    return __floats2half2_rn(first, second);
}
__device__ inline __nv_bfloat162 rounded(float first, float second, __nv_bfloat16) {
    return __floats2bfloat162_rn(first, second);
}

// Two adjacent elements in one register, the first one in its lower half.
template <class T>
__device__ unsigned pair(float first, float second) {
    const auto both = rounded(first, second, T{});
    unsigned bits = 0;
    memcpy(&bits, &both, sizeof(bits));
    return bits;
}

__device__ inline float2 as_floats(__half2 both) {
    return __half22float2(both);
}
__device__ inline float2 as_floats(__nv_bfloat162 both) {
    return __bfloat1622float2(both);
}

// The two floats of pair().
template <class T>
__device__ float2 both_of(unsigned bits) {
    decltype(rounded(0.0f, 0.0f, T{})) both;
    memcpy(&both, &bits, sizeof(both));
    return as_floats(both);
}

// d += a b, 16 x 16 times 16 x 8. The last argument only selects the element type.
__device__ inline void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], __half) {
    ptx::mma_m16n8k16_f16(d, a, b);
}
__device__ inline void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], __nv_bfloat16) {
    ptx::mma_m16n8k16_bf16(d, a, b);
}

}  // namespace course
