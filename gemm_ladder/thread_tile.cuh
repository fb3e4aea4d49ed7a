// What a thread does with its TM x TN results.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/pack.cuh"
#include "tile.cuh"

namespace gemm {

// Updates N elements of a row of C, STRIDE columns apart, the first at (row, col).
template <int STRIDE, int N>
__device__ void write_row(const Sgemm& gemm, std::size_t row, std::size_t col, const float (&sums)[N]) {
    if (row >= gemm.m() || col >= gemm.n()) return;
    const std::size_t cols_left = gemm.n() - col;
    float* const elements =
        &gemm.c(row, col);  // one address for all; the compiler adds j * STRIDE for nothing
#pragma unroll
    for (std::size_t j = 0; j < N; ++j) {
        if (j * STRIDE < cols_left) update(gemm, elements[j * STRIDE], sums[j]);
    }
}

// sums[i][j] += a[i] * b[j], row 0 from left to right, row 1 from right to left, and so on: at each turn the next multiply-add has both
// the same a or b as the one before it. An operand that the instruction before has read too comes out of the reuse cache,
// not out of a bank of the register file, where three operands of one instruction may collide.
template <int TM, int TN>
__device__ void multiply_fragments(const float (&a)[TM], const float (&b)[TN], float (&sums)[TM][TN]) {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int step = 0; step < TN; ++step) {
            const int j = i % 2 == 0 ? step : TN - 1 - step;
            sums[i][j] += a[i] * b[j];
        }
    }
}

}  // namespace gemm
