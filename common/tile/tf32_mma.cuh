// Products A B^T in FP32 accuracy by mma.sync, for a tile of 64 x 64 results: 3xTF32.
//
// Each operand is split into the sum of two TF32 numbers, and three products replace one
// (tf32_split.cuh). A and B are both K-major, as mma.sync requires: so both are copied 16 bytes at
// a time and loaded by ldmatrix. Day 40 builds this main loop step by step.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"
#include "common/tile/tf32_split.cuh"
#include "common/tile/tile_copies.cuh"

namespace course::tf32_mma {

// The tile of a block, and the part of each of its four warps.
struct Tile {
    using T = float;
    static constexpr int BM = 64;  // rows of A
    static constexpr int BN = 64;  // rows of B
    static constexpr int BK = 32;  // columns at a time: 128 bytes of a row
    static constexpr int WM = 32;  // rows of A of a warp
    static constexpr int WN = 32;  // rows of B
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * kWarpSize;
    static constexpr int STAGES = 3;
    static constexpr bool SWIZZLED = true;
};

struct Stage {
    SharedTile<Tile, Tile::BM, Tile::BK> a;
    SharedTile<Tile, Tile::BN, Tile::BK> b;
};
using Stages = Stage[Tile::STAGES];

constexpr int DOWN = Tile::WM / 16;   // instructions for a warp's tile: DOWN x ACROSS,
constexpr int ACROSS = Tile::WN / 8;  // 16 x 8 results each
constexpr int ROWS = DOWN * 2;        // of a lane
constexpr int COLS = ACROSS * 2;

// A lane's results, four of each instruction. result(sums, i, j): row(i) and col(j) of Lane.
using Sums = float[DOWN][ACROSS][4];
__device__ inline float& result(Sums& sums, int i, int j) {
    return sums[i / 2][j / 2][i % 2 * 2 + j % 2];
}

// Lane 4 g + t has columns 2 t and 2 t + 1 of rows g and g + 8.
struct Lane {
    int warp_row = static_cast<int>(threadIdx.x) / kWarpSize / Tile::WARPS_N * Tile::WM;
    int warp_col = static_cast<int>(threadIdx.x) / kWarpSize % Tile::WARPS_N * Tile::WN;
    int lane = static_cast<int>(threadIdx.x) % kWarpSize;

    // In the block's tile.
    __device__ int row(int i) const { return warp_row + i * 8 + lane / 4; }
    __device__ int col(int j) const { return warp_col + j / 2 * 8 + lane % 4 * 2 + j % 2; }
};

// sums += the products of a stage. Tensor cores truncate their sums, always towards zero. So they
// only sum the BK terms of a stage; CUDA cores, which round to nearest, add these partial sums.
__device__ inline void multiply_stage(Stage& stage, const Lane& at, Sums& sums) {
    const auto as_float = [](unsigned bits) { return __uint_as_float(bits); };
    const int lane = at.lane;
    Sums run = {};
#pragma unroll
    for (int chunk = 0; chunk < Tile::BK / 4; chunk += 2) {
        SplitOperands<4> a[DOWN];
        SplitOperands<2> b[ACROSS];
        unsigned four[4];
#pragma unroll
        for (int i = 0; i < DOWN; ++i) {
            ptx::ldmatrix_x4(four, stage.a.chunk(at.warp_row + i * 16 + lane % 16, chunk + lane / 16));
            a[i] = split({as_float(four[0]), as_float(four[1]), as_float(four[2]), as_float(four[3])});
        }
#pragma unroll
        for (int j = 0; j < ACROSS; j += 2) {
            const int row = at.warp_col + j * 8 + lane / 16 * 8 + lane % 8;
            ptx::ldmatrix_x4(four, stage.b.chunk(row, chunk + lane / 8 % 2));
            b[j] = split({as_float(four[0]), as_float(four[1])});
            b[j + 1] = split({as_float(four[2]), as_float(four[3])});
        }
        // The small products come first: while the sum is small, truncation loses less.
#pragma unroll
        for (int i = 0; i < DOWN * ACROSS; ++i)
            ptx::mma_m16n8k8_tf32(run[i / ACROSS][i % ACROSS], a[i / ACROSS].small, b[i % ACROSS].big);
#pragma unroll
        for (int i = 0; i < DOWN * ACROSS; ++i)
            ptx::mma_m16n8k8_tf32(run[i / ACROSS][i % ACROSS], a[i / ACROSS].big, b[i % ACROSS].small);
#pragma unroll
        for (int i = 0; i < DOWN * ACROSS; ++i)
            ptx::mma_m16n8k8_tf32(run[i / ACROSS][i % ACROSS], a[i / ACROSS].big, b[i % ACROSS].big);
    }
#pragma unroll
    for (int i = 0; i < ROWS * COLS; ++i)
        result(sums, i / COLS, i % COLS) += result(run, i / COLS, i % COLS);
}

// sums += rows `row` to row + BM - 1 of A times rows `col` to col + BN - 1 of B, transposed. All
// threads of the block call it. Rows and columns of A and B are fewer than 2^31 - BM. ALIGNED: rows
// are 16-byte aligned.
template <bool ALIGNED>
__device__ void multiply(const DeviceMatrix<const float>& a, const DeviceMatrix<const float>& b, int row,
                         int col, Stages& stages, Sums& sums) {
    TileCopies<Tile, Tile::BM, Tile::BK> copies_of_a(a, row, 0);
    TileCopies<Tile, Tile::BN, Tile::BK> copies_of_b(b, col, 0);
    const auto steps = static_cast<int>(ceil_div<std::size_t>(a.cols(), Tile::BK));
    // After the last step the groups are empty, so that every wait counts the same number of
    // groups.
    const auto copy = [&](int step) {
        if (step < steps) {
            copies_of_a.to<ALIGNED>(stages[step % Tile::STAGES].a);
            copies_of_b.to<ALIGNED>(stages[step % Tile::STAGES].b);
            copies_of_a.next_columns();
            copies_of_b.next_columns();
        }
        ptx::cp_async_commit();
    };
    const Lane lane;
    for (int step = 0; step < Tile::STAGES - 1; ++step)
        copy(step);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        ptx::cp_async_wait<Tile::STAGES - 2>();
        __syncthreads();  // the stage is complete, and the one before it is safe to overwrite
        copy(step + Tile::STAGES - 1);
        multiply_stage(stages[step % Tile::STAGES], lane, sums);
    }
}

// Row `row` of A times row `col` of B, on CUDA cores. Inf, and what TF32 rounds to Inf, become NaN
// when they are split: a sum that is not finite is computed again.
__device__ inline float multiply_in_fp32(const DeviceMatrix<const float>& a, std::size_t row,
                                         const DeviceMatrix<const float>& b, std::size_t col) {
    float sum = 0;
#pragma unroll 1
    for (std::size_t k = 0; k < a.cols(); ++k)
        sum += a(row, k) * b(col, k);
    return sum;
}

}  // namespace course::tf32_mma
