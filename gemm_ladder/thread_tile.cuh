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

// Row i of multiply_fragments().
template <int TN>
__device__ void multiply_row(int i, float a, const float (&b)[TN], float (&sums)[TN]) {
#pragma unroll
    for (int step = 0; step < TN; ++step) {
        const int j = i % 2 == 0 ? step : TN - 1 - step;
        sums[j] += a * b[j];
    }
}

// sums[i][j] += a[i] * b[j], row 0 from left to right, row 1 from right to left, and so on: at each turn the next multiply-add has both
// the same a or b as the one before it. An operand that the instruction before has read too comes out of the reuse cache,
// not out of a bank of the register file, where three operands of one instruction may collide.
template <int TM, int TN>
__device__ void multiply_fragments(const float (&a)[TM], const float (&b)[TN], float (&sums)[TM][TN]) {
#pragma unroll
    for (int i = 0; i < TM; ++i)
        multiply_row(i, a[i], b, sums[i]);
}

// From step 6 on, a thread's rows and columns come in fours: those of thread 0, those of thread 1... of THREADS, and from the start.
// The place in the tile of row or column i of `thread`:
template <int THREADS>
constexpr __device__ int place_of(int thread, int i) {
    return (i / 4 * THREADS + thread) * 4 + i % 4;
}

// The elements of `thread` in one row of a tile in shared memory.
template <int THREADS, int N>
__device__ void load_fragment(const float* row, int thread, float (&fragment)[N]) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        const auto four = course::Pack<float, 4>::load(&row[place_of<THREADS>(thread, i)]);
#pragma unroll
        for (int j = 0; j < 4; ++j)
            fragment[i + j] = four.value[j];
    }
}

// Updates VEC neighbours in C from `elements` on.
template <int VEC>
__device__ void update_pack(const Sgemm& gemm, float* elements, const float* sums) {
    using Pack = course::Pack<float, VEC>;
    Pack pack{};
    if (gemm.beta != 0) pack = Pack::load(elements);
#pragma unroll
    for (int j = 0; j < VEC; ++j)
        update(gemm, pack.value[j], sums[j]);
    pack.store(elements);
}

// Updates N elements of a row of C: fours, THREADS fours apart, the first at (row, col). A four that lies partly beyond the edge is
// written one by one.
template <int VEC, int THREADS, int N>
__device__ void write_row_of_packs(const Sgemm& gemm, std::size_t row, std::size_t col,
                                   const float (&sums)[N]) {
    if (row >= gemm.m() || col >= gemm.n()) return;
    const std::size_t cols_left = gemm.n() - col;
    float* const elements = &gemm.c(row, col);
#pragma unroll
    for (int i = 0; i < N; i += VEC) {
        const std::size_t place = place_of<THREADS>(0, i);
        if (place + VEC <= cols_left) {
            update_pack<VEC>(gemm, elements + place, sums + i);
        } else {
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                if (place + j < cols_left) update(gemm, elements[place + j], sums[i + j]);
            }
        }
    }
}

}  // namespace gemm
