// What a thread does with its TM x TN results.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/pack.cuh"
#include "common/tile/fragments.cuh"
#include "common/tile/tile_shape.cuh"
#include "tile.cuh"

namespace gemm {

using course::multiply_row;
using course::Place;
using course::place_of;
using course::place_of_thread;
using course::place_of_warp;
using course::TileShape;

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

// sums[i][j] += a[i] * b[j], a snake through the rows: see multiply_row().
template <int TM, int TN>
__device__ void multiply_fragments(const float (&a)[TM], const float (&b)[TN], float (&sums)[TM][TN]) {
#pragma unroll
    for (int i = 0; i < TM; ++i)
        multiply_row(i, a[i], b, sums[i]);
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
