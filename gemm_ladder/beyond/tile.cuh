// What the kernels of beyond/ begin with: which tile of C a block has.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "../edges.cuh"
#include "../sgemm.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"

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

// element = alpha sum + beta element. With beta = 0, the element is not read.
__device__ inline void update(const Sgemm& gemm, float& element, float sum) {
    element = gemm.beta == 0 ? gemm.alpha * sum : gemm.alpha * sum + gemm.beta * element;
}

// Updates C(row, col), if it is in range.
__device__ inline void write_element(const Sgemm& gemm, std::size_t row, std::size_t col, float sum) {
    if (row < gemm.m() && col < gemm.n()) update(gemm, gemm.c(row, col), sum);
}

}  // namespace gemm
