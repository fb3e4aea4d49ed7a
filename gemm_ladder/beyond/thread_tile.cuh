// How a thread stores its TM x TN results.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/pack.cuh"
#include "common/tile/tile_shape.cuh"
#include "tile.cuh"

namespace gemm {

using course::Place;
using course::place_of;
using course::place_of_thread;
using course::place_of_warp;
using course::TileShape;

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

// Updates N elements of a row of C: fours, THREADS fours apart, the first at (row, col). A four that is partly out of range is
// stored one by one.
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
