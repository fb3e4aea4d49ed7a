// The main loop of day 25's matrix products: a block computes BM x BN elements of A op(B), and each
// thread keeps TM x TN of them in registers. Day 5 and the ladder build such loops step by step;
// this one accepts any shape, and B as it is or transposed.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"

namespace day25 {

template <int BM_, int BN_, int BK_, int TM_, int TN_>
struct Tile {
    static constexpr int BM = BM_, BN = BN_, BK = BK_;
    static constexpr int TM = TM_, TN = TN_;
    static constexpr int ROWS = BM / TM;  // threads that share a column of the tile
    static constexpr int COLS = BN / TN;  // threads that share a row
    static constexpr int THREADS = ROWS * COLS;

    // The padding of one column puts the elements of a column into different banks.
    struct Shared {
        float a[BM][BK + 1];
        float b[BK][BN + 1];
    };

    // TM x TN results of this thread: rows row() + i * ROWS and columns col() + j * COLS of the
    // tile.
    float sum[TM][TN] = {};

    static __device__ int row() { return static_cast<int>(threadIdx.x) / COLS; }
    static __device__ int col() { return static_cast<int>(threadIdx.x) % COLS; }

    // Adds the tile of A op(B) that starts at (row0, col0). All threads of the block call it.
    template <bool TRANSPOSE_B>
    __device__ void multiply(course::DeviceMatrix<const float> a, course::DeviceMatrix<const float> b,
                             std::size_t row0, std::size_t col0, Shared& shared) {
        for (std::size_t k0 = 0; k0 < a.cols(); k0 += BK) {
            load<BM, BK, BK + 1, false>(a, row0, k0, &shared.a[0][0]);
            if constexpr (TRANSPOSE_B) {
                load<BN, BK, BN + 1, true>(b, col0, k0, &shared.b[0][0]);
            } else {
                load<BK, BN, BN + 1, false>(b, k0, col0, &shared.b[0][0]);
            }
            __syncthreads();  // the tiles are complete
            for (int k = 0; k < BK; ++k)
                multiply_add(shared, k);
            __syncthreads();  // safe to overwrite
        }
    }

  private:
    // Loads PIECE_ROWS x PIECE_COLS elements of `from`, from (row0, col0) on; adjacent threads load
    // along rows. Out-of-range elements are zero-filled. FLIP: `to` is transposed. Its rows have
    // STRIDE floats.
    template <int PIECE_ROWS, int PIECE_COLS, int STRIDE, bool FLIP>
    static __device__ void load(course::DeviceMatrix<const float> from, std::size_t row0, std::size_t col0,
                                float* to) {
        static_assert(PIECE_ROWS * PIECE_COLS % THREADS == 0, "all threads load the same number of elements");
#pragma unroll
        for (int first = 0; first < PIECE_ROWS * PIECE_COLS; first += THREADS) {
            const int r = (first + static_cast<int>(threadIdx.x)) / PIECE_COLS;
            const int c = (first + static_cast<int>(threadIdx.x)) % PIECE_COLS;
            const bool inside = row0 + r < from.rows() && col0 + c < from.cols();
            to[FLIP ? c * STRIDE + r : r * STRIDE + c] = inside ? from(row0 + r, col0 + c) : 0.0f;
        }
    }

    __device__ void multiply_add(const Shared& shared, int k) {
        float b[TN];
#pragma unroll
        for (int j = 0; j < TN; ++j)
            b[j] = shared.b[k][col() + j * COLS];
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            const float a = shared.a[row() + i * ROWS][k];
#pragma unroll
            for (int j = 0; j < TN; ++j)
                sum[i][j] += a * b[j];
        }
    }
};

}  // namespace day25
