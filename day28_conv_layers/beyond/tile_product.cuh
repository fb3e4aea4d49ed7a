// Day 28, beyond: a tile of a matrix product in FP32, for kernels that differ only in what they
// copy. The ladder (gemm_ladder/) builds this loop step by step.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/tile/fragments.cuh"
#include "common/tile/loader.cuh"
#include "common/tile/tile_shape.cuh"

namespace day28 {

// 64 rows x 128 columns of the result per block of 128 threads, 8 x 8 per thread.
constexpr int kStages = 4;
using Tile = course::TileShape<64, 128, 8, 32, 64, 8, 8, kStages>;
using Stage = course::Stage<Tile>;  // 8 x 64 of the left operand, transposed, and 8 x 128 of the right
using Sums = float[Tile::TM][Tile::TN];

inline int round_up(int count, int step) {
    return course::ceil_div(count, step) * step;
}

__device__ inline void multiply_stage(const Stage& stage, const course::Place& place, Sums& sums) {
    course::Fragments<Tile> fragments[2];
    fragments[0].read(stage, 0, place);
#pragma unroll
    for (int k = 0; k < Tile::BK - 1; ++k)
        course::multiply_and_read_ahead(fragments[k % 2], sums, fragments[(k + 1) % 2], stage, k + 1, place);
#pragma unroll
    for (int i = 0; i < Tile::TM; ++i)
        course::multiply_row(i, fragments[(Tile::BK - 1) % 2].a[i], fragments[(Tile::BK - 1) % 2].b, sums[i]);
}

// sums += the products of all stages. copy(step, stage) issues this thread's asynchronous copies of
// one of the `steps` stages; three of them are in flight while one is multiplied.
template <class Copy>
__device__ void sum_products(Sums& sums, Stage (&stages)[kStages], int steps, Copy copy) {
    const course::Place place = course::place_of_thread<Tile>(static_cast<int>(threadIdx.x));
    for (int step = 0; step < kStages - 1; ++step) {
        if (step < steps) copy(step, stages[step]);
        course::ptx::cp_async_commit();
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        course::ptx::cp_async_wait<kStages - 2>();
        __syncthreads();  // the stage is complete, and the one before it is safe to overwrite
        const int ahead = step + kStages - 1;
        if (ahead < steps) copy(ahead, stages[ahead % kStages]);
        course::ptx::cp_async_commit();
        multiply_stage(stages[step % kStages], place, sums);
    }
}

// Copies 8 x 64 elements of a matrix whose rows are whole tiles: one float4 per thread.
__device__ inline void copy_rows_of_a(Stage& stage, const float* matrix, int row, int first_column,
                                      int columns) {
    const int thread = static_cast<int>(threadIdx.x);
    const int r = thread / (Tile::BM / 4);
    const int column = thread % (Tile::BM / 4) * 4;
    course::ptx::cp_async_16(&stage.a[r][column],
                             matrix + static_cast<std::size_t>(row + r) * columns + first_column + column);
}

// Where in the tile a thread's row i and column j are.
__device__ inline int row_of(int i) {
    const int thread = static_cast<int>(threadIdx.x);
    return course::place_of_thread<Tile>(thread).row + course::place_of<Tile::LANES_M>(0, i);
}
__device__ inline int column_of(int j) {
    const int thread = static_cast<int>(threadIdx.x);
    return course::place_of_thread<Tile>(thread).col + course::place_of<Tile::LANES_N>(0, j);
}

// Four adjacent results of row i, from column j on.
__device__ inline course::Pack<float, 4> four(const Sums& sums, int i, int j) {
    return {{sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]}};
}

}  // namespace day28
