// Day 45, beyond: batched products of BF16 matrices on tensor cores; sums and C are FP32. The first
// two versions multiply FP16, too.
// PMPP chapters 5 and 6 (both editions).
//
//   version     what is new                                         what limits it
//   tile_each   a block for each tile, mma.sync                     each tile fills the pipeline again
//   pipelined   persistent blocks: the copies for a tile start      with a short K, the stores of C;
//               while the one before is multiplied                  otherwise mma.sync
//   wgmma       Hopper: TMA and wgmma, in batched_wgmma.cuh         the stores of C; shared memory
//
// The first two are one kernel, at the end of this file; the grid differs, as in fused_matmul.cuh.
// mma.sync, ldmatrix and the XOR swizzle are the subject of day 40. Here they are given.
//
//   ./course run day45 --size 8x256x256x64
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "batched_bfloat16.hpp"
#include "common/device/grid.hpp"
#include "common/device/half_fragment.cuh"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/tile_copies.cuh"
#include "common/tile/tile_order.cuh"

namespace day45 {

// A block computes BM x BN results, a warp WM x WN. With 64 x 64 a warp loads 16 fragments for 32
// MMAs. Two such blocks fit on an SM, so that one multiplies while the other stores. T:
// __nv_bfloat16 or __half.
template <class T_>
struct WarpTile {
    using T = T_;
    static constexpr int BM = 128, BN = 128, BK = 64, WM = 64, WN = 64, STAGES = 3, BLOCKS = 2;
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * 32;
    static constexpr bool SWIZZLED = true;
};

// Which operands are K-major in memory: A as it is, B transposed. The others are MN-major.
template <class T, bool A_K_MAJOR_, bool B_K_MAJOR_>
struct Layout : WarpTile<T> {
    static constexpr bool A_K_MAJOR = A_K_MAJOR_, B_K_MAJOR = B_K_MAJOR_;
};

// EXTENT rows or columns of an operand by BK along K, in shared memory as in global memory: a
// K-major tile has EXTENT rows, an MN-major one BK rows.
template <class L, int EXTENT, bool K_MAJOR>
using OperandTile = course::SharedTile<L, K_MAJOR ? EXTENT : L::BK, K_MAJOR ? L::BK : EXTENT>;

template <class L>
struct MmaStage {
    OperandTile<L, L::BM, L::A_K_MAJOR> a;
    OperandTile<L, L::BN, L::B_K_MAJOR> b;
};

// One thread's copies of the tiles of one operand, step by step along K. Out-of-range elements are
// zero-filled.
template <class L, int EXTENT, bool K_MAJOR>
class OperandCopies {
    using Tile = OperandTile<L, EXTENT, K_MAJOR>;

  public:
    // `first`: the first row or column of op() in the tile.
    __device__ OperandCopies(const course::DeviceMatrix<const typename L::T>& matrix, std::size_t first)
        : copies_(matrix, K_MAJOR ? static_cast<int>(first) : 0, K_MAJOR ? 0 : static_cast<int>(first)),
          aligned_(course::is_aligned(matrix.data(), 16) && matrix.leading_dimension() % 8 == 0) {}

    __device__ void next_to(Tile& tile) {
        if (aligned_) {
            copies_.template to<true>(tile);
        } else {
            copies_.template to<false>(tile);
        }
        if constexpr (K_MAJOR) {
            copies_.next_columns();
        } else {
            copies_.next_rows();
        }
    }

  private:
    course::TileCopies<L, K_MAJOR ? EXTENT : L::BK, K_MAJOR ? L::BK : EXTENT> copies_;
    // All rows are 16-byte aligned. For an array of pointers, only the kernel can check this.
    bool aligned_;
};

// The copies of one block, as CopiesAhead in fused_matmul.cuh: step after step, tile after tile.
template <class L>
class MmaCopies {
  public:
    __device__ MmaCopies(const course::OperandsOf<typename L::T>& operands, const course::EveryTile<L>& tiles)
        : operands_(operands),
          tiles_(tiles),
          steps_(static_cast<int>(course::ceil_div<std::size_t>(operands.k(), L::BK))),
          tile_(tiles.first()),
          a_(a_of(tiles.at(tile_))),
          b_(b_of(tiles.at(tile_))) {}

    // Steps of a tile.
    __device__ int steps() const { return steps_; }

    // Issues the copies of the next step into `stage` and closes their group. After the last tile
    // the group is empty.
    __device__ void start(MmaStage<L>& stage) {
        if (tiles_.has(tile_)) {
            a_.next_to(stage.a);
            b_.next_to(stage.b);
            if (++step_ == steps_) next_tile();
        }
        course::ptx::cp_async_commit();
    }

  private:
    using A = OperandCopies<L, L::BM, L::A_K_MAJOR>;
    using B = OperandCopies<L, L::BN, L::B_K_MAJOR>;

    __device__ A a_of(const course::Tile& tile) const { return {operands_.a[tile.product], tile.row}; }
    __device__ B b_of(const course::Tile& tile) const { return {operands_.b[tile.product], tile.col}; }

    __device__ void next_tile() {
        step_ = 0;
        tile_ = tiles_.next(tile_);
        if (!tiles_.has(tile_)) return;
        const course::Tile tile = tiles_.at(tile_);
        a_ = a_of(tile);
        b_ = b_of(tile);
    }

    const course::OperandsOf<typename L::T>& operands_;
    const course::EveryTile<L>& tiles_;
    int steps_;
    int step_ = 0;
    unsigned tile_;
    A a_;
    B b_;
};

// Loads 16 rows or columns of an operand by 16 of K: four matrices of 8 x 8, in the order of
// mma.sync. The first two start at k, the others at k + 8. Each lane gives the address of one of
// their 32 chunks of 16 bytes. Those of an MN-major tile are transposed as they are loaded.
template <bool K_MAJOR, class Tile>
__device__ void load_fragment(unsigned (&four)[4], Tile& tile, int first, int k) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (K_MAJOR) {
        course::ptx::ldmatrix_x4(four, tile.chunk(first + lane % 16, k / 8 + lane / 16));
    } else {
        course::ptx::ldmatrix_x4_trans(four,
                                       tile.chunk(k + lane / 16 * 8 + lane % 8, first / 8 + lane / 8 % 2));
    }
}

// The sums of a warp: 16 x 8 results each. Lane 4 g + t holds columns 2 t and 2 t + 1 of rows g and
// g + 8.
template <class L>
class WarpSums {
    static constexpr int ROWS = L::WM / 16, COLS = L::WN / 8;

  public:
    // Adds the products of one stage.
    __device__ void multiply(MmaStage<L>& stage) {
#pragma unroll
        for (int k = 0; k < L::BK; k += 16) {
            unsigned a[ROWS][4];
            unsigned b[COLS][2];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                load_fragment<L::A_K_MAJOR>(a[i], stage.a, warp_row() + i * 16, k);
#pragma unroll
            for (int j = 0; j < COLS; j += 2) {
                unsigned four[4];
                load_fragment<L::B_K_MAJOR>(four, stage.b, warp_col() + j * 8, k);
                b[j][0] = four[0];
                b[j][1] = four[2];
                b[j + 1][0] = four[1];
                b[j + 1][1] = four[3];
            }
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLS; ++j)
                    course::mma(sums_[i][j], a[i], b[j], typename L::T{});
        }
    }

    // Stores the results of a block whose tile starts at (row, col) of C.
    __device__ void write(const course::OutputOf<float>& out, std::size_t row, std::size_t col) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int first_row = static_cast<int>(row) + warp_row() + lane / 4;
        const int first_col = static_cast<int>(col) + warp_col() + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int lower = 0; lower < 2; ++lower)
#pragma unroll
                for (int j = 0; j < COLS; ++j)
                    store_pair(out, first_row + i * 16 + lower * 8, first_col + j * 8, sums_[i][j][lower * 2],
                               sums_[i][j][lower * 2 + 1]);
    }

  private:
    static __device__ int warp_row() {
        return static_cast<int>(threadIdx.x) / 32 / L::WARPS_N * L::WM;
    }
    static __device__ int warp_col() {
        return static_cast<int>(threadIdx.x) / 32 % L::WARPS_N * L::WN;
    }

    float sums_[ROWS][COLS][4] = {};
};

// Idea: two stages are in flight while one is multiplied, also from one tile to the next. One
// kernel serves the four layouts, because no tile is transposed in shared memory.
// Cost removed: a multiply-add as an instruction of its own; with persistent blocks, the latency of
// the first stage of each tile.
// Still limits it: with a short K, the stores of C; with a long one, mma.sync, which takes its
// operands from registers.
template <class L>
__global__ __launch_bounds__(L::THREADS, L::BLOCKS) void multiply_on_tensor_cores(
    const __grid_constant__ BatchedMatmulOf<typename L::T> matmul,
    const __grid_constant__ course::EveryTile<L> tiles) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<MmaStage<L>*>(memory);
    MmaCopies<L> copies(matmul.operands, tiles);
    for (int stage = 0; stage < L::STAGES - 1; ++stage)
        copies.start(stages[stage]);
    int now = 0;
    int free = L::STAGES - 1;
    for (unsigned tile = tiles.first(); tiles.has(tile); tile = tiles.next(tile)) {
        WarpSums<L> sums;
        for (int step = 0; step < copies.steps(); ++step) {
            course::ptx::cp_async_wait<L::STAGES - 2>();
            __syncthreads();  // the stage is complete; the one before it is safe to overwrite
            copies.start(stages[free]);
            sums.multiply(stages[now]);
            free = now;
            now = now + 1 == L::STAGES ? 0 : now + 1;
        }
        const course::Tile at = tiles.at(tile);
        sums.write(course::make_output(matmul.c[at.product], matmul.alpha, matmul.beta), at.row, at.col);
    }
    course::ptx::cp_async_wait<0>();
}

// Dynamic shared memory of a block: its stages.
template <class L>
constexpr std::size_t kMmaShared = sizeof(MmaStage<L>) * L::STAGES;

// PERSISTENT: at most as many blocks as the GPU runs at the same time. Otherwise one for each tile.
template <class L, bool PERSISTENT>
void launch_multiply_on_tensor_cores(const BatchedMatmulOf<typename L::T>& matmul, cudaStream_t stream) {
    const auto kernel = multiply_on_tensor_cores<L>;
    const auto& operands = matmul.operands;
    const auto tiles = course::every_tile<L>(operands.m(), operands.n(), operands.count());
    course::allow_shared_bytes(kernel, kMmaShared<L>);
    const unsigned resident = course::resident_blocks(kernel, L::THREADS, kMmaShared<L>);
    const unsigned grid = PERSISTENT ? std::min(tiles.all, resident) : tiles.all;
    course::launch(kernel, {grid, L::THREADS, kMmaShared<L>, stream}, matmul, tiles);
}

}  // namespace day45
