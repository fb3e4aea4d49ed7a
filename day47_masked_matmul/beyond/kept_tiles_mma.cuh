// Day 47, beyond: skip_tiles with the products on tensor cores, in FP32 accuracy: each operand
// becomes the sum of two TF32 numbers, and three products replace one (common/tile/tf32_mma.cuh).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "bytes.cuh"
#include "common/device/launch.hpp"
#include "common/device/operands.hpp"
#include "common/device/pack.cuh"
#include "common/tile/epilogue.cuh"
#include "common/tile/tf32_mma.cuh"
#include "common/tile/tile_order.cuh"
#include "masked_matmul.cuh"

namespace day47 {

namespace mma = course::tf32_mma;

// Is an element of the tile kept? All threads of the block call it. For a band, col - row is least
// in the lower left corner of the tile, and greatest in the upper right one.
__device__ inline bool keeps_any(const Band& band, const course::Tile& tile,
                                 const course::DeviceMatrix<float>&) {
    const std::int64_t corner = static_cast<std::int64_t>(tile.col) - static_cast<std::int64_t>(tile.row);
    return -std::int64_t{band.below} <= corner + (mma::Tile::BN - 1) &&
           corner - (mma::Tile::BM - 1) <= band.above;
}

__device__ inline bool keeps_any(const Bytes::Array& array, const course::Tile& tile,
                                 const course::DeviceMatrix<float>& c) {
    bool is_any = false;
    for (int i = static_cast<int>(threadIdx.x); i < mma::Tile::BM * mma::Tile::BN; i += mma::Tile::THREADS) {
        const std::size_t row = tile.row + i / mma::Tile::BN;
        const std::size_t col = tile.col + i % mma::Tile::BN;
        is_any |= row < c.rows() && col < c.cols() && array.keeps(row, col);
    }
    return __syncthreads_or(is_any) != 0;
}

// At most 128 registers per thread. Three blocks, with 146, take 8 to 13 % longer at K = 128 and 64
// (H100).
constexpr int kBlocksPerSm = 4;

// Idea: a block for each tile. If the mask keeps an element of it, tensor cores multiply; otherwise
// the block fills it. Several blocks share an SM, so some multiply while others store.
// Cost removed: the multiply-adds of CUDA cores. Smaller tiles waste less at the diagonal, and no
// list is needed.
// Still limits it: the stores of C (K = 64, counters: L2 62 % busy); with a long K, three products
// for each one.
template <bool ALIGNED, class Mask>
__global__ void __launch_bounds__(mma::Tile::THREADS, kBlocksPerSm)
    multiply_kept_tiles_mma(const __grid_constant__ course::Operands operands,
                            const __grid_constant__ course::EveryTile<mma::Tile> tiles,
                            const __grid_constant__ Mask mask, const __grid_constant__ course::Batch<float> c,
                            const float alpha, const float fill) {
    extern __shared__ __align__(128) unsigned char memory[];
    const course::Tile tile = tiles.at(blockIdx.x);
    const auto of_product = mask.of(tile.product);
    const course::DeviceMatrix<float> matrix = c[tile.product];
    if (!keeps_any(of_product, tile, matrix)) return fill_tile<mma::Tile>(tile, matrix, fill);

    const course::DeviceMatrix<const float> a = operands.a[tile.product];
    const course::DeviceMatrix<const float> b = operands.b[tile.product];
    mma::Sums sums = {};
    mma::multiply<ALIGNED>(a, b, static_cast<int>(tile.row), static_cast<int>(tile.col),
                           reinterpret_cast<mma::Stages&>(memory), sums);
    const mma::Lane at;
    const bool in_pairs = course::has_aligned_rows(matrix);
#pragma unroll
    for (int i = 0; i < mma::ROWS; ++i) {
        const std::size_t row = tile.row + at.row(i);
        if (row >= matrix.rows()) continue;
#pragma unroll
        for (int j = 0; j < mma::COLS; j += 2) {
            const std::size_t col = tile.col + at.col(j);
            course::Pack<float, 2> two;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                if (col + h >= matrix.cols()) continue;
                float sum = mma::result(sums, i, j + h);
                const bool keeps = of_product.keeps(row, col + h);
                if (keeps && !isfinite(sum)) sum = mma::multiply_in_fp32(a, row, b, col + h);
                two.value[h] = keeps ? alpha * sum : fill;
                if (!in_pairs || col + 2 > matrix.cols()) matrix(row, col + h) = two.value[h];
            }
            if (in_pairs && col + 2 <= matrix.cols()) two.store(&matrix(row, col));
        }
    }
}

constexpr std::size_t kMmaShared = sizeof(mma::Stages);

// ALIGNED: all rows of A and B are 16-byte aligned.
template <bool ALIGNED, class Mask>
void launch_multiply_kept_tiles_mma(const course::Operands& operands, const Mask& mask,
                                    const course::Batch<float>& c, float alpha, float fill,
                                    cudaStream_t stream) {
    const auto tiles = course::every_tile<mma::Tile>(operands);
    course::launch(multiply_kept_tiles_mma<ALIGNED, Mask>,
                   {tiles.all, mma::Tile::THREADS, kMmaShared, stream}, operands, tiles, mask, c, alpha,
                   fill);
}

}  // namespace day47
