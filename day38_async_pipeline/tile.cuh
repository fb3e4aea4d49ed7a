// Code that all versions share: which part of C a thread computes, which part of a tile it copies,
// and how it multiplies.
//
//     BM x BN      tile of C of a block           ROWS x COLS         threads of a block that multiply
//     TM x TN      results of a thread            LANES_M x LANES_N   lanes of a warp among them
//     BK           depth of a tile of A and B     STAGES              tiles in shared memory
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"

namespace day38 {

using course::DeviceMatrix;

struct Operands {
    DeviceMatrix<const float> a;
    DeviceMatrix<const float> b;
    DeviceMatrix<float> c;
};

// WIDE: floats per load from shared memory, and adjacent columns of C per thread.
template <int BM_, int BN_, int BK_, int TM_, int TN_, int WIDE_, int LANES_M_ = 4, int STAGES_ = 1>
struct TileShape {
    static constexpr int BM = BM_;
    static constexpr int BN = BN_;
    static constexpr int BK = BK_;
    static constexpr int TM = TM_;
    static constexpr int TN = TN_;
    static constexpr int WIDE = WIDE_;
    static constexpr int LANES_M = LANES_M_;
    static constexpr int LANES_N = 32 / LANES_M;
    static constexpr int STAGES = STAGES_;
    static constexpr int ROWS = BM / TM;
    static constexpr int COLS = BN / TN;
    static constexpr int THREADS = ROWS * COLS;  // that multiply

    static_assert(BM % TM == 0 && BN % TN == 0, "TileShape: TM must divide BM, TN must divide BN");
    static_assert(TM % 2 == 0, "TileShape: rows are multiplied two at a time");
    static_assert(ROWS % LANES_M == 0 && COLS % LANES_N == 0,
                  "TileShape: a block is a whole number of warps");
    static_assert(LANES_M % 2 == 0 && LANES_N % 2 == 0,
                  "TileShape: a warp is made of squares of 2 x 2 lanes");
    static_assert(TN % WIDE == 0 && BK % WIDE == 0, "TileShape: WIDE must divide TN and BK");
};

// A tile of A and one of B in shared memory. Rows of A are padded by four floats, so that adjacent
// rows start in different banks and stay 16-byte aligned.
template <class T>
struct alignas(16) Stage {
    float a[T::BM][T::BK + 4];
    float b[T::BK][T::BN];
};

// The block's dynamic shared memory: the stages, and the barriers or pipeline state that guard
// them.
struct Nothing {};
template <class T, class Agreement = Nothing>
struct Shared {
    Stage<T> stage[T::STAGES];
    Agreement agreement;

    static __device__ Shared& of_block() {
        extern __shared__ float4 memory[];
        return reinterpret_cast<Shared&>(memory[0]);
    }
};

// First row and column of the block's tile of C. Tiles are numbered row by row.
struct Origin {
    std::size_t row;
    std::size_t col;
};

template <class T>
__device__ Origin origin_of_block(const DeviceMatrix<float>& c) {
    const auto across = static_cast<unsigned>(course::ceil_div<std::size_t>(c.cols(), T::BN));
    return {static_cast<std::size_t>(blockIdx.x / across) * T::BM,
            static_cast<std::size_t>(blockIdx.x % across) * T::BN};
}

// A block for each tile of C.
template <class T>
unsigned blocks_for_tiles(const DeviceMatrix<float>& c) {
    return course::blocks_for(
        course::ceil_div<std::size_t>(c.rows(), T::BM) * course::ceil_div<std::size_t>(c.cols(), T::BN), 1);
}

template <class T>
__device__ unsigned tiles_along_k(const Operands& operands) {
    return static_cast<unsigned>(course::ceil_div<std::size_t>(operands.a.cols(), T::BK));
}

// --- From global to shared memory ----------------------------------------------------------------

// The part of a HEIGHT x WIDTH tile that one of THREADS threads copies: packs of VEC adjacent
// elements. Adjacent threads copy adjacent packs of a row. The tile may cross the edges of the
// matrix.
template <int HEIGHT, int WIDTH, int VEC, int THREADS>
class Share {
    static constexpr int ACROSS = WIDTH / VEC;  // packs in a row
    static constexpr int DOWN =
        THREADS < ACROSS ? 1 : THREADS / ACROSS;  // rows from one pack of the thread to the next
    static constexpr int RIGHT =
        THREADS < ACROSS ? THREADS * VEC : WIDTH;  // columns, if it has several packs in a row
    static_assert((THREADS % ACROSS == 0 || ACROSS % THREADS == 0) && HEIGHT % DOWN == 0,
                  "Share: all threads copy the same number of packs");

  public:
    // The first tile starts at (row, col) of `matrix`.
    __device__ Share(const DeviceMatrix<const float>& matrix, std::size_t row, std::size_t col, int thread)
        : row_(thread * VEC / WIDTH),
          col_(thread * VEC % WIDTH),
          rows_left_(matrix.rows() - min(matrix.rows(), row)),
          cols_left_(matrix.cols() - min(matrix.cols(), col)),
          leading_dimension_(matrix.leading_dimension()),
          from_(matrix.data() + (row + row_) * leading_dimension_ + col + col_) {}

    // Calls copy(to, from, inside) for each pack. An out-of-range pack (`inside` is false) must be
    // zero-filled; its `from` must not be dereferenced.
    template <int PITCH, class Copy>
    __device__ void each(float (&tile)[HEIGHT][PITCH], Copy copy) const {
#pragma unroll
        for (int down = 0; down < HEIGHT; down += DOWN) {
            const bool row_inside = static_cast<std::size_t>(row_ + down) < rows_left_;
#pragma unroll
            for (int right = 0; right < WIDTH; right += RIGHT) {
                copy(&tile[row_ + down][col_ + right], from_ + down * leading_dimension_ + right,
                     row_inside && static_cast<std::size_t>(col_ + right) < cols_left_);
            }
        }
    }

    __device__ void move_right() {
        from_ += WIDTH;
        cols_left_ -= min(cols_left_, static_cast<std::size_t>(WIDTH));
    }
    __device__ void move_down() {
        from_ += HEIGHT * leading_dimension_;
        rows_left_ -= min(rows_left_, static_cast<std::size_t>(HEIGHT));
    }

  private:
    int row_;
    int col_;
    std::size_t rows_left_;  // of the matrix, from the tile's first row on
    std::size_t cols_left_;
    std::size_t leading_dimension_;
    const float* from_;
};

// The tiles of A and B along K, in order, as one of THREADS threads copies them.
template <class T, int VEC, int THREADS>
class Source {
  public:
    __device__ Source(const Operands& operands, Origin origin, int thread)
        : a_(operands.a, origin.row, 0, thread), b_(operands.b, 0, origin.col, thread) {}

    // Calls copy() for the thread's packs of the next tile.
    template <class Copy>
    __device__ void next(Stage<T>& stage, Copy copy) {
        a_.each(stage.a, copy);
        b_.each(stage.b, copy);
        a_.move_right();
        b_.move_down();
    }

  private:
    Share<T::BM, T::BK, VEC, THREADS> a_;
    Share<T::BK, T::BN, VEC, THREADS> b_;
};

// --- From shared memory to registers, and to C ---------------------------------------------------

// A thread's rows of the tile are row, row + ROWS, row + 2 ROWS, ...; its columns come in groups of
// WIDE.
template <class T>
struct Place {
    int row;
    int col;

    // Lanes form squares of 2 x 2. Lanes i and i ^ 1 load the same row of A, i and i ^ 2 the same
    // columns of B, so that one wavefront of a 16-byte load serves half a warp instead of a
    // quarter.
    static __device__ Place of_thread(int thread) {
        const int lane = thread % 32;
        const int square = lane / 4;
        const int warp = thread / 32;
        constexpr int WARPS_N = T::COLS / T::LANES_N;
        constexpr int SQUARES_N = T::LANES_N / 2;
        return {warp / WARPS_N * T::LANES_M + square / SQUARES_N * 2 + lane / 2 % 2,
                (warp % WARPS_N * T::LANES_N + square % SQUARES_N * 2 + lane % 2) * T::WIDE};
    }

    static constexpr __device__ int row_step(int i) { return i * T::ROWS; }
    static constexpr __device__ int col_step(int j) { return j / T::WIDE * T::COLS * T::WIDE + j % T::WIDE; }
};

// sums += the tile of A times the tile of B.
template <class T>
__device__ void multiply(const Stage<T>& stage, Place<T> place, float (&sums)[T::TM][T::TN]) {
    using Pack = course::Pack<float, T::WIDE>;
#pragma unroll
    for (int k0 = 0; k0 < T::BK; k0 += T::WIDE) {
        Pack a[T::TM];
#pragma unroll
        for (int i = 0; i < T::TM; ++i)
            a[i] = Pack::load(&stage.a[place.row + place.row_step(i)][k0]);
#pragma unroll
        for (int k = 0; k < T::WIDE; ++k) {
            Pack b[T::TN / T::WIDE];
#pragma unroll
            for (int j = 0; j < T::TN; j += T::WIDE)
                b[j / T::WIDE] = Pack::load(&stage.b[k0 + k][place.col + place.col_step(j)]);
            const auto multiply_add = [&](int i, int j) {
                sums[i][j] += a[i].value[k] * b[j / T::WIDE].value[j % T::WIDE];
            };
            // A snake through two rows: each multiply-add reuses an operand of the one before it.
#pragma unroll
            for (int i = 0; i < T::TM; i += 2) {
#pragma unroll
                for (int j = 0; j < T::TN; ++j) {
                    multiply_add(i + j % 2, j);
                    multiply_add(i + 1 - j % 2, j);
                }
            }
        }
    }
}

// Stores the thread's results float by float. A 16-byte store needs four consecutive registers,
// which would constrain the register allocation of the multiply-adds.
template <class T>
__device__ void write(const DeviceMatrix<float>& c, Origin origin, Place<T> place,
                      const float (&sums)[T::TM][T::TN]) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
        const std::size_t row = origin.row + place.row + place.row_step(i);
        if (row >= c.rows()) break;
#pragma unroll
        for (int j = 0; j < T::TN; ++j) {
            const std::size_t col = origin.col + place.col + place.col_step(j);
            if (col < c.cols()) c(row, col) = sums[i][j];
        }
    }
}

}  // namespace day38
