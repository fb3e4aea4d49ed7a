// Day 42: C = A B^T on tensor cores, factors of 8 bits: integers, or floating point (FP8).             PMPP chapters 5 and 6
//
//   version          tile       stages   what is new                                              what limits it
//   bytes_mma_sync   128 x 128  3        mma.sync: 32 of k in one instruction; no transposing      mma.sync itself
//   bytes_wgmma      128 x 256  4        TMA and wgmma, as async_store: a stage has 128 of k       storing C, and power
//   bytes_promoted   128 x 128  6        FP8 summed in all digits of a float: every 128 of k       a warpgroup adds while it could multiply
//
// C is m x n; A, row-major, is m x k; B, row-major, is n x k: both lie along k. Any shape, and rows that begin anywhere; the last two, which are
// in eight_bits_wgmma.cuh, take rows that begin at multiples of 16 bytes.
//
//   ./course run day42 --variant bytes_mma_sync
#pragma once

#include <cuda_runtime.h>

#include "common/device/grid.hpp"
#include "common/device/ptx.cuh"
#include "common/tile/pair_output.cuh"
#include "common/tile/raster_order.cuh"
#include "common/tile/tile_copies.cuh"
#include "eight_bits.hpp"

namespace day42 {

using course::DeviceMatrix;
using course::RasterOrder;

template <class T_>
struct TileShape {
    using T = T_;
    static constexpr int BM = 128, BN = 128, BK = 128, WM = 64, WN = 32, STAGES = 3;
    static constexpr bool SWIZZLED = true;
    static constexpr int WARPS_N = BN / WN;
    static constexpr int THREADS = BM / WM * WARPS_N * 32;
};

// Rows of A, and rows of B, which are columns of the product: 128 bytes of each.
template <class S>
struct Stage {
    course::SharedTile<S, S::BM, S::BK> a;
    course::SharedTile<S, S::BN, S::BK> b;
};

template <class T>
__device__ void multiply_add(Sum<T> (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    if constexpr (std::is_same_v<T, std::int8_t>) {
        course::ptx::mma_m16n8k32_s8(d, a, b);
    } else if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) {
        course::ptx::mma_m16n8k32_e4m3(d, a, b);
    } else {
        course::ptx::mma_m16n8k32_e5m2(d, a, b);
    }
}

// The sums of a warp: lane 4 g + t has columns 2 t and 2 t + 1 of eight, in rows g and g + 8.
template <class S>
class ByteSums {
    static constexpr int ROWS = S::WM / 16, COLUMNS = S::WN / 8;  // products of a warp for 32 of k

  public:
    // Products of one stage. ldmatrix moves rows of 16 bytes, whatever they are: to it, 32 bytes of k are two columns of matrices. It
    // could not transpose bytes, and need not, as B's rows lie along k as A's do.
    __device__ void multiply(Stage<S>& stage, int warp_row, int warp_column) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int k = 0; k < S::BK; k += 32) {
            unsigned a[ROWS][4];
            unsigned b[COLUMNS][2];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                course::ptx::ldmatrix_x4(a[i],
                                         stage.a.chunk(warp_row + i * 16 + lane % 16, k / 16 + lane / 16));
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 2) {
                unsigned two[4];
                const int b_row = warp_column + (j + lane / 16) * 8 + lane % 8;
                course::ptx::ldmatrix_x4(two, stage.b.chunk(b_row, k / 16 + lane / 8 % 2));
                b[j][0] = two[0];
                b[j][1] = two[1];
                b[j + 1][0] = two[2];
                b[j + 1][1] = two[3];
            }
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    multiply_add<typename S::T>(sums_[i][j], a[i], b[j]);
        }
    }

    // The warp's results begin at (row, column) of C.
    __device__ void store(const course::OutputOf<Sum<typename S::T>>& out, int row, int column) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
                for (int lower = 0; lower < 2; ++lower)
                    store_pair(out, row + i * 16 + lower * 8 + lane / 4, column + j * 8 + lane % 4 * 2,
                               sums_[i][j][lower * 2], sums_[i][j][lower * 2 + 1]);
    }

  private:
    Sum<typename S::T> sums_[ROWS][COLUMNS][4] = {};
};

// --- Kernel ------------------------------------------------------------------------------------------------------------

// Idea: multi_stage again, with elements of half the size: an instruction takes 32 of them along k, and a row of a stage holds 128.
// Cost removed: half of the bytes, and half of the instructions.
// Still limits it: mma.sync takes its operands through registers. On an H200 FP8 takes more than twice as long as INT8, and loses no digits: as if
// its factors became half precision first.
template <class S, bool kAligned>
__global__ void __launch_bounds__(S::THREADS)
    bytes_mma_sync(DeviceMatrix<const typename S::T> a, DeviceMatrix<const typename S::T> b,
                   course::OutputOf<Sum<typename S::T>> out, RasterOrder order) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const stages = reinterpret_cast<Stage<S>*>(memory);
    const RasterOrder::Tile tile = order.tile(static_cast<int>(blockIdx.x));
    const int row = tile.row * S::BM;
    const int column = tile.column * S::BN;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int warp_row = warp / S::WARPS_N * S::WM;
    const int warp_column = warp % S::WARPS_N * S::WN;
    const int count = static_cast<int>(course::ceil_div<std::size_t>(a.cols(), S::BK));

    course::TileCopies<S, S::BM, S::BK> a_copies(a, row, 0);
    course::TileCopies<S, S::BN, S::BK> b_copies(b, column, 0);
    const auto copy = [&](int number) {
        if (number < count) {
            a_copies.template to<kAligned>(stages[number % S::STAGES].a);
            b_copies.template to<kAligned>(stages[number % S::STAGES].b);
            a_copies.next_columns();
            b_copies.next_columns();
        }
        course::ptx::cp_async_commit();
    };

    ByteSums<S> sums;
    for (int number = 0; number < S::STAGES - 1; ++number)
        copy(number);
    for (int number = 0; number < count; ++number) {
        course::ptx::cp_async_wait<S::STAGES - 2>();
        __syncthreads();  // the stage is there, and nobody needs the one before it any more
        copy(number + S::STAGES - 1);
        sums.multiply(stages[number % S::STAGES], warp_row, warp_column);
    }
    sums.store(out, row + warp_row, column + warp_column);
}

}  // namespace day42
