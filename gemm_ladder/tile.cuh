// What every step's kernel begins and ends with: which tile of C a block has, and how a finished sum becomes an element of C.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "sgemm.hpp"

namespace gemm {

using course::DeviceMatrix;

// Where a tile begins in C.
struct Origin {
    std::size_t row;
    std::size_t col;
};

// Tiles are counted along the rows of C: tile 1 is to the right of tile 0.
template <int BM, int BN>
__device__ Origin origin_of_tile(const Sgemm& gemm, unsigned tile) {
    const auto tiles_across = static_cast<unsigned>(course::ceil_div<std::size_t>(gemm.n(), BN));
    return {static_cast<std::size_t>(tile / tiles_across) * BM,
            static_cast<std::size_t>(tile % tiles_across) * BN};
}

// Beyond the edge of the matrix stands a 0, which adds nothing to a sum.
__device__ inline float load_or_zero(const DeviceMatrix<const float>& matrix, std::size_t row,
                                     std::size_t col) {
    return row < matrix.rows() && col < matrix.cols() ? matrix(row, col) : 0.0f;
}

// element = alpha sum + beta element. With beta = 0, the element is not read.
__device__ inline void update(const Sgemm& gemm, float& element, float sum) {
    element = gemm.beta == 0 ? gemm.alpha * sum : gemm.alpha * sum + gemm.beta * element;
}

// Updates C(row, col), if there is such an element.
__device__ inline void write_element(const Sgemm& gemm, std::size_t row, std::size_t col, float sum) {
    if (row < gemm.m() && col < gemm.n()) update(gemm, gemm.c(row, col), sum);
}

}  // namespace gemm
