// The first kernel of all versions: two numbers per row of Q, from which its weights and their
// gradients are computed.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "attention_backward.hpp"
#include "common/device/grid.hpp"
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

// d[i] = sum over j of P[i][j] dP[i][j], which is d_out[i] . out[i], so it needs no score.
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

template <class T>
void launch_row_terms(const Gradient<T>& a, const RowTerms& terms, cudaStream_t stream) {
    const std::size_t rows = a.q.extents().batch * a.q.extents().heads * terms.padded;
    row_terms<T><<<course::blocks_for(rows, kRowWarps), kRowWarps * course::kWarpSize, 0, stream>>>(a, terms);
}

}  // namespace day34
