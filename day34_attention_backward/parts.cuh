// What several versions share: the two numbers of each row of Q that its weights and their
// gradients need, and pairs of 16-bit elements in registers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>

#include "attention_backward.hpp"
#include "common/device/warp.cuh"

namespace day34 {

constexpr float kLog2E = 1.44269504f;
constexpr float kInfinity = __builtin_huge_valf();
constexpr int kRowWarps = 4;  // of a block of row_terms: a warp per row

// Of row i of head h (counted through all batches): lse[h * padded + i] in base 2, and d, the dot
// product of d_out and out. Rows from length_q on have lse = +Inf, so their weights are 0.
struct RowTerms {
    float* lse;
    float* d;
    std::size_t padded;
};

// The first element of a row. Heads are counted through all batches.
template <class T>
__device__ T* row_of(const HeadsView<T>& view, std::size_t head, std::size_t row) {
    const std::size_t heads = view.extents().heads;
    return view.head(head / heads, head % heads) + row * view.strides().row;
}

// d[i] = sum over j of P[i][j] dP[i][j], which is d_out[i] . out[i]: no score is needed for it.
template <class T>
__global__ void row_terms(const Gradient<T> a, const RowTerms terms) {
    const std::size_t index = std::size_t{blockIdx.x} * kRowWarps + threadIdx.x / course::kWarpSize;
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const std::size_t head = index / terms.padded;
    const std::size_t row = index % terms.padded;
    if (head >= a.q.extents().batch * a.q.extents().heads) return;
    float lse = kInfinity;
    float d = 0;
    if (row < a.q.extents().length) {
        const T* const out = row_of(a.out, head, row);
        const T* const d_out = row_of(a.d_out, head, row);
        for (int c = lane; c < a.q.dim(); c += course::kWarpSize)
            d += static_cast<float>(out[c]) * static_cast<float>(d_out[c]);
        d = course::warp_reduce(d, [](float x, float y) { return x + y; });
        // A row that sees no key has -Inf, and no weight but 0.
        const float given = a.lse[head * a.q.extents().length + row];
        if (given != -kInfinity) lse = given * kLog2E;
    }
    if (lane > 0) return;
    terms.lse[index] = lse;
    terms.d[index] = d;
}

// --- Pairs, as fragments of tensor cores hold them -----------------------------------------------

__device__ inline __half2 rounded(float first, float second, __half) {
    return __floats2half2_rn(first, second);
}
__device__ inline __nv_bfloat162 rounded(float first, float second, __nv_bfloat16) {
    return __floats2bfloat162_rn(first, second);
}

// Two neighbours in one register, the first one in its lower half.
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

}  // namespace day34
