// Products A B^T of 16-bit matrices, FP16 or BF16, by mma.sync; the sums are FP32. A and B are both
// K-major, as mma.sync requires: so both are copied 16 bytes at a time and loaded by ldmatrix. Day
// 40 builds this main loop step by step; here it is the loop of main_loop.cuh, for tensor cores.
//
// A product of two 16-bit numbers is exact in FP32. Tensor cores truncate as they add 16 of them to
// a sum, so the sum of k products is off by at most about k * 2^-23 of the sum of their magnitudes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/half_fragment.cuh"
#include "common/device/operands.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"
#include "common/tile/tile_copies.cuh"
#include "common/tile/tile_order.cuh"

namespace course::half_mma {

// A block computes BM x BN results, a warp 64 x 64: it loads 16 fragments for 32 MMAs.
template <class T_, int BM_, int BN_, int STAGES_>
struct TileOf {
    using T = T_;
    static constexpr int BM = BM_, BN = BN_, STAGES = STAGES_;
    static constexpr int BK = 64;  // columns at a time: 128 bytes of a row
    static constexpr int WM = 64, WN = 64;
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * kWarpSize;
    static constexpr bool SWIZZLED = true;
};

template <class L>
struct Stage {
    SharedTile<L, L::BM, L::BK> a;
    SharedTile<L, L::BN, L::BK> b;
};
template <class L>
constexpr std::size_t kStages = sizeof(Stage<L>) * L::STAGES;

constexpr int DOWN = 64 / 16;   // instructions for a warp's tile: DOWN x ACROSS,
constexpr int ACROSS = 64 / 8;  // 16 x 8 results each
constexpr int ROWS = DOWN * 2;  // of a lane
constexpr int COLS = ACROSS * 2;

// A lane's results, four of each instruction.
using Sums = float[DOWN][ACROSS][4];

// Lane 4 g + t has columns 2 t and 2 t + 1 of rows g and g + 8 of each instruction. col(j) ascends
// with j.
template <class L>
struct LaneCoords {
    course::Tile tile;
    int warp_row = static_cast<int>(threadIdx.x) / kWarpSize / L::WARPS_N * L::WM;
    int warp_col = static_cast<int>(threadIdx.x) / kWarpSize % L::WARPS_N * L::WN;
    int lane = static_cast<int>(threadIdx.x) % kWarpSize;

    // In the block's tile, and in the product.
    __device__ int row_in_tile(int i) const { return warp_row + i * 8 + lane / 4; }
    __device__ int col_in_tile(int j) const { return warp_col + j / 2 * 8 + lane % 4 * 2 + j % 2; }
    __device__ std::size_t row(int i) const { return tile.row + row_in_tile(i); }
    __device__ std::size_t col(int j) const { return tile.col + col_in_tile(j); }
};

// Lanes that have results of the same rows: 4 g to 4 g + 3.
constexpr int LANES_OF_ROW = 4;

// The copies of one block: step after step, tile after tile, as TileLoader in loader.cuh. Walk
// lists the tiles. ALIGNED: all rows are 16-byte aligned.
template <class L, bool ALIGNED, class Walk>
class Copies {
    using T = typename L::T;
    using A = TileCopies<L, L::BM, L::BK>;
    using B = TileCopies<L, L::BN, L::BK>;

  public:
    __device__ Copies(const OperandsOf<T>& operands, const Walk& walk)
        : operands_(operands),
          walk_(walk),
          steps_(static_cast<int>(ceil_div<std::size_t>(operands.k(), L::BK))),
          tile_(walk.first()),
          a_(a_of(walk.at(tile_))),
          b_(b_of(walk.at(tile_))) {}

    // Steps of a tile.
    __device__ int steps() const { return steps_; }

    // Issues the copies of the next step into `stage` and closes their group. After the last tile
    // the group is empty, so that every wait counts the same number of groups.
    __device__ void start(Stage<L>& stage) {
        if (steps_ != 0 && walk_.has(tile_)) {
            a_.template to<ALIGNED>(stage.a);
            b_.template to<ALIGNED>(stage.b);
            a_.next_columns();
            b_.next_columns();
            if (++step_ == steps_) next_tile();
        }
        ptx::cp_async_commit();
    }

  private:
    __device__ A a_of(const course::Tile& tile) const {
        return {operands_.a[tile.product], static_cast<int>(tile.row), 0};
    }
    __device__ B b_of(const course::Tile& tile) const {
        return {operands_.b[tile.product], static_cast<int>(tile.col), 0};
    }
    __device__ void next_tile() {
        step_ = 0;
        tile_ = walk_.next(tile_);
        if (!walk_.has(tile_)) return;
        a_ = a_of(walk_.at(tile_));
        b_ = b_of(walk_.at(tile_));
    }

    const OperandsOf<T>& operands_;
    const Walk& walk_;
    int steps_;
    int step_ = 0;
    unsigned tile_;
    A a_;
    B b_;
};

// sums += the products of a stage.
template <class L>
__device__ void multiply_stage(Stage<L>& stage, const LaneCoords<L>& at, Sums& sums) {
#pragma unroll
    for (int chunk = 0; chunk < L::BK / 8; chunk += 2) {
        unsigned a[DOWN][4];
        unsigned b[ACROSS][2];
#pragma unroll
        for (int i = 0; i < DOWN; ++i)
            ptx::ldmatrix_x4(a[i], stage.a.chunk(at.warp_row + i * 16 + at.lane % 16, chunk + at.lane / 16));
#pragma unroll
        for (int j = 0; j < ACROSS; j += 2) {
            unsigned four[4];
            ptx::ldmatrix_x4(four, stage.b.chunk(at.warp_col + j * 8 + at.lane / 16 * 8 + at.lane % 8,
                                                 chunk + at.lane / 8 % 2));
            b[j][0] = four[0];
            b[j][1] = four[1];
            b[j + 1][0] = four[2];
            b[j + 1][1] = four[3];
        }
#pragma unroll
        for (int i = 0; i < DOWN; ++i)
#pragma unroll
            for (int j = 0; j < ACROSS; ++j)
                mma(sums[i][j], a[i], b[j], typename L::T{});
    }
}

// Multiplies the tiles of `walk`, one after the other. take(at, values) is called with each
// finished tile: values[i][j] is the sum of row at.row(i) and column at.col(j). All threads of the
// block call it. There is a barrier in each step of a tile. `stages`: L::STAGES in shared memory.
template <class L, bool ALIGNED, class Walk, class Take>
__device__ void multiply_tiles(const OperandsOf<typename L::T>& operands, const Walk& walk, Stage<L>* stages,
                               Take take) {
    Copies<L, ALIGNED, Walk> copies(operands, walk);
    for (int stage = 0; stage < L::STAGES - 1; ++stage)
        copies.start(stages[stage]);
    const int steps = copies.steps();
    int now = 0;
    int free = L::STAGES - 1;
    for (unsigned tile = walk.first(); walk.has(tile); tile = walk.next(tile)) {
        const LaneCoords<L> at{walk.at(tile)};
        Sums sums = {};
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            ptx::cp_async_wait<L::STAGES - 2>();
            __syncthreads();  // the stage is complete; the one before it is safe to overwrite
            copies.start(stages[free]);
            multiply_stage(stages[now], at, sums);
            free = now;
            now = now + 1 == L::STAGES ? 0 : now + 1;
        }
        float values[ROWS][COLS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
#pragma unroll
            for (int j = 0; j < COLS; ++j)
                values[i][j] = sums[i / 2][j / 2][i % 2 * 2 + j % 2];
        }
        take(at, values);
    }
    ptx::cp_async_wait<0>();
}

// Does each matrix of the batch have 16-byte aligned rows?
template <class T>
bool has_aligned_rows(const Batch<const T>& batch) {
    constexpr std::size_t kInChunk = 16 / sizeof(T);
    return batch.pointers.empty() && is_aligned(batch.first.data(), 16) &&
           batch.first.leading_dimension() % kInChunk == 0 && batch.stride % kInChunk == 0;
}

}  // namespace course::half_mma
