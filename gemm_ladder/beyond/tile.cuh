// Which tile of C a block has, and how a thread stores its results there: what the kernels of
// beyond/ share. Where a thread is in the tile: common/tile/tile_shape.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "../edges.cuh"
#include "../sgemm.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/tile/tile_shape.cuh"

namespace gemm {

// Waits until the previous kernel has ended and its writes are visible. Kernels that
// course::launch_early() starts call it before they touch memory (day 41, PDL).
__device__ inline void wait_for_kernel_in_front() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

using course::DeviceMatrix;
using course::Place;
using course::place_of;
using course::place_of_thread;
using course::place_of_warp;
using course::TileShape;

// Where a tile starts in C.
struct Origin {
    std::size_t row;
    std::size_t col;
};

// Tile 1 is to the right of tile 0.
template <int BM, int BN>
__device__ Origin origin_of_tile(const Sgemm& gemm, unsigned tile) {
    const auto tiles_across = static_cast<unsigned>(course::ceil_div<std::size_t>(gemm.n(), BN));
    return {static_cast<std::size_t>(tile / tiles_across) * BM,
            static_cast<std::size_t>(tile % tiles_across) * BN};
}

// C(row, col) = alpha sum + beta C(row, col), if it is in range.
__device__ inline void write_element(const Sgemm& gemm, std::size_t row, std::size_t col, float sum) {
    if (row >= gemm.m() || col >= gemm.n()) return;
    float& element = gemm.c(row, col);
    element = updated(gemm, sum, element);
}

// VEC adjacent elements in a row of C, in one access.
template <int VEC>
__device__ void update_pack(const Sgemm& gemm, float* elements, const float* sums) {
    using Pack = course::Pack<float, VEC>;
    Pack pack{};
    if (gemm.beta != 0) pack = Pack::load(elements);
#pragma unroll
    for (int j = 0; j < VEC; ++j)
        pack.value[j] = updated(gemm, sums[j], pack.value[j]);
    pack.store(elements);
}

// N elements in a row of C: groups of four, THREADS groups apart, the first of them at (row, col).
// A pack that is partly out of range is stored element by element.
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
                if (place + j < cols_left)
                    elements[place + j] = updated(gemm, sums[i + j], elements[place + j]);
            }
        }
    }
}

// Is none of a thread's results Inf or NaN? 0 times a number is 0; 0 times Inf or NaN is NaN.
template <class Sums>
__device__ bool all_finite(const Sums& sums) {
    constexpr int COUNT = sizeof(Sums) / sizeof(float);
    const auto* const all = reinterpret_cast<const float*>(&sums);
    float zero = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        zero += 0 * all[i];
    return zero == 0;
}

// The sum of one element of C in FP32.
__device__ inline float fp32_element(const Sgemm& gemm, std::size_t row, std::size_t col) {
    float sum = 0;
    for (std::size_t k = 0; k < gemm.k(); ++k)
        sum += gemm.a(row, k) * gemm.b(k, col);
    return sum;
}

// The tile of C at `origin` in FP32, element by element, by the block's first `threads` threads:
// slow, but needed only for Inf and NaN.
template <int BM, int BN>
__device__ void write_fp32_tile(const Sgemm& gemm, const Origin& origin, int threads) {
    for (int element = static_cast<int>(threadIdx.x); element < BM * BN; element += threads) {
        const std::size_t row = origin.row + element / BN;
        const std::size_t col = origin.col + element % BN;
        if (row < gemm.m() && col < gemm.n()) write_element(gemm, row, col, fp32_element(gemm, row, col));
    }
}

}  // namespace gemm
