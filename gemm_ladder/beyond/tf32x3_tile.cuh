// FP32 accuracy from TF32 tensor cores (step 15): how a block multiplies its tiles. How a factor is split: common/tile/tf32_split.cuh.
//
// Tensor cores do not round their sums but cut them off, always towards zero. Over a long sum this adds up. So they only sum RUN terms;
// that sum is added to the others by a CUDA core, which rounds to nearest. With RUN = 8 this is an addition of every result for three
// instructions of the tensor cores. A larger RUN takes fewer, but more registers, because the sums of all runs are open at the same time.
// H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/ptx.cuh"
#include "common/tile/tf32_split.cuh"
#include "thread_tile.cuh"
#include "tile.cuh"

namespace gemm {

// Of a block, BM x BN results; of a warp, WM x WN. BLOCKS of them fit on a multiprocessor.
template <int BM_, int BN_, int BK_, int WM_, int WN_, int STAGES_, int RUN_, int BLOCKS_>
struct TensorTile {
    static constexpr int BM = BM_;
    static constexpr int BN = BN_;
    static constexpr int BK = BK_;
    static constexpr int WM = WM_;
    static constexpr int WN = WN_;
    static constexpr int STAGES = STAGES_;
    static constexpr int RUN = RUN_;
    static constexpr int BLOCKS = BLOCKS_;

    static_assert(BM % WM == 0 && BN % WN == 0,
                  "TensorTile: a block's tile is a whole number of warps' tiles");
    static_assert(WM % 16 == 0 && WN % 32 == 0,
                  "TensorTile: a warp's tile is made of parts of 16 rows and 32 columns");
    static_assert(BK == 16 || BK == 32,
                  "TensorTile: where A stands in shared memory is worked out for 16 and 32 columns");
    static_assert(RUN % 8 == 0 && BK % RUN == 0,
                  "TensorTile: a tile is a whole number of runs, a run of 8 columns");
    static_assert(STAGES >= 2, "TensorTile: a tile is multiplied while another one is on its way");

    static constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
    static_assert(THREADS <= 1024, "TensorTile: a block has at most 1024 threads");

    // Instructions of the tensor cores: 16 x 8 results each.
    static constexpr int DOWN = WM / 16;
    static constexpr int ACROSS = WN / 8;
};

template <class T>
using TensorSums = float[T::DOWN][T::ACROSS][4];

// One stage: both tiles row by row as they come from global memory, but four columns at a time in another order.
//
// A lane needs of A: two neighbours of a row, so one 8-byte load for each of 16 lanes at a time: 4 rows, 8 columns. Rows of 32 floats
// all begin at bank 0, rows of 16 at bank 0 or 16; quad_of_a() moves those that would meet. Of B: four neighbours of a row, so a 16-byte load
// for each of 8 lanes at a time: 4 rows, every other one, 8 columns; quad_of_b() moves each of the rows to other banks. Copies write whole
// rows. So each access takes the 2 (A) or 4 (B, copies) cycles that its bytes take anyway.
template <class T>
struct alignas(16) TensorStage {
    float a[T::BM][T::BK];
    float b[T::BK][T::BN];

    // Where four neighbours stand, counted in fours.
    static __device__ unsigned quad_of_a(unsigned row, unsigned quad) {
        return quad ^ row * T::BK / 32 % (T::BK / 8) * 2;
    }
    static __device__ unsigned quad_of_b(unsigned row, unsigned quad) { return quad ^ row / 2 % 4 * 2; }
};

// What a thread copies of a ROWS x COLS tile: fours of neighbours, neighbouring threads' neighbouring fours.
template <int ROWS, int COLS, int THREADS, int VEC>
class TileCopy {
    static constexpr int QUADS_IN_ROW = COLS / 4;
    static constexpr int STEP = THREADS / QUADS_IN_ROW;  // rows copied at once
    static_assert(THREADS % QUADS_IN_ROW == 0 && ROWS % STEP == 0,
                  "TileCopy: every thread copies the same number of fours");

  public:
    // The tile begins at (row, col).
    __device__ TileCopy(const DeviceMatrix<const float>& matrix, std::size_t row, std::size_t col)
        : quad_(matrix.data() + (row + first_row()) * matrix.leading_dimension() + col + quad() * 4),
          leading_dimension_(matrix.leading_dimension()) {}

    // Starts to copy the part of the tile that lies within the matrix, `rows` x `cols`; beyond it stand zeros.
    template <class Place>
    __device__ void copy(float (&tile)[ROWS][COLS], int rows, int cols, Place place) const {
        const int below = rows - static_cast<int>(first_row());
        const int inside = min(max(cols - static_cast<int>(quad()) * 4, 0), 4);
#pragma unroll
        for (int down = 0; down < ROWS; down += STEP) {
            const unsigned row = first_row() + down;
            const int count = down < below ? inside : 0;
            float* const to = &tile[row][place(row, quad()) * 4];
            const float* const from = quad_ + down * leading_dimension_;
            if constexpr (VEC == 4) {
                course::ptx::cp_async_16(to, from, static_cast<unsigned>(count) * sizeof(float));
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    course::ptx::cp_async_4(to + j, from + j, j < count);
            }
        }
    }

    __device__ void move_right() {
        quad_ += COLS;
    }
    __device__ void move_down() {
        quad_ += ROWS * leading_dimension_;
    }

  private:
    static __device__ unsigned first_row() {
        return threadIdx.x / QUADS_IN_ROW;
    }
    static __device__ unsigned quad() {
        return threadIdx.x % QUADS_IN_ROW;
    }

    const float* quad_;
    std::size_t leading_dimension_;
};

using course::split;
using course::SplitFactors;

// Lane 4 g + t, and where the tile of its warp begins.
template <class T>
struct TensorLane {
    unsigned row = threadIdx.x / 32 / (T::BN / T::WN) * T::WM;
    unsigned col = threadIdx.x / 32 % (T::BN / T::WN) * T::WN;
    unsigned g = threadIdx.x % 32 / 4;
    unsigned t = threadIdx.x % 4;
};

// A lane's part of 16 rows of A and 8 columns, k and up, as mma_m16n8k8_tf32() wants it: `i` counts the 16 rows.
//
// Sums do not ask for an order, so which of the columns is called t and which t + 4 is free: they are neighbours, 2 t and 2 t + 1.
template <class T>
__device__ SplitFactors<4> load_a(const TensorStage<T>& stage, const TensorLane<T>& lane, unsigned k, int i) {
    const unsigned row = lane.row + lane.g + i * 16;
    const unsigned col = TensorStage<T>::quad_of_a(lane.g, k / 4 + lane.t / 2) * 4 + lane.t % 2 * 2;
    const auto upper = course::Pack<float, 2>::load(&stage.a[row][col]);
    const auto lower = course::Pack<float, 2>::load(&stage.a[row + 8][col]);
    return split({upper.value[0], lower.value[0], upper.value[1], lower.value[1]});
}

// And of 8 rows of B, for four instructions: column g of the j-th is column 4 g + j of 32; `i` counts the 32 columns.
template <class T>
__device__ void load_b(const TensorStage<T>& stage, const TensorLane<T>& lane, unsigned k, int i,
                       SplitFactors<2> (&b)[T::ACROSS]) {
    const unsigned row = k + lane.t * 2;
    const unsigned col = TensorStage<T>::quad_of_b(row, lane.col / 4 + lane.g + i * 8) * 4;
    const auto first = course::Pack<float, 4>::load(&stage.b[row][col]);
    const auto second = course::Pack<float, 4>::load(&stage.b[row + 1][col]);
#pragma unroll
    for (int j = 0; j < 4; ++j)
        b[i * 4 + j] = split({first.value[j], second.value[j]});
}

// sums += A B for RUN columns of A, k and up, and as many rows of B.
template <class T>
__device__ void multiply_run(const TensorStage<T>& stage, const TensorLane<T>& lane, unsigned k,
                             TensorSums<T>& sums) {
    using course::ptx::mma_m16n8k8_tf32;
    TensorSums<T> run = {};
#pragma unroll
    for (int step = 0; step < T::RUN; step += 8) {
        SplitFactors<2> b[T::ACROSS];
#pragma unroll
        for (int i = 0; i < T::ACROSS / 4; ++i)
            load_b<T>(stage, lane, k + step, i, b);
#pragma unroll
        for (int i = 0; i < T::DOWN; ++i) {
            const SplitFactors<4> a = load_a<T>(stage, lane, k + step, i);
            // One product for all columns in turn, so that no instruction needs the result of the one before it. The small products
            // first, while there is nothing large in the sum that would cut them off.
#pragma unroll
            for (int j = 0; j < T::ACROSS; ++j)
                mma_m16n8k8_tf32(run[i][j], a.small, b[j].big);
#pragma unroll
            for (int j = 0; j < T::ACROSS; ++j)
                mma_m16n8k8_tf32(run[i][j], a.big, b[j].small);
#pragma unroll
            for (int j = 0; j < T::ACROSS; ++j)
                mma_m16n8k8_tf32(run[i][j], a.big, b[j].big);
            if (step + 8 < T::RUN) continue;
#pragma unroll
            for (int j = 0; j < T::ACROSS * 4; ++j)
                sums[i][j / 4][j % 4] += run[i][j / 4][j % 4];
        }
    }
}

// sums += A B, for the BM x BN tile of C at `origin`. All threads of the block call it; `stages` are STAGES of them.
template <class T, int VEC>
__device__ void multiply_tf32x3(const Sgemm& gemm, const Origin& origin, TensorStage<T>* stages,
                                TensorSums<T>& sums) {
    constexpr int AHEAD = T::STAGES - 1;  // tiles on their way or ready
    using Stage = TensorStage<T>;
    const auto within = [](std::size_t end, std::size_t begin, int most) {
        return static_cast<int>(min(end - min(begin, end), static_cast<std::size_t>(most)));
    };
    const int rows = within(gemm.m(), origin.row, T::BM);
    const int cols = within(gemm.n(), origin.col, T::BN);
    const auto tiles = static_cast<int>(course::ceil_div<std::size_t>(gemm.k(), T::BK));
    TileCopy<T::BM, T::BK, T::THREADS, VEC> copy_a(gemm.a, origin.row, 0);
    TileCopy<T::BK, T::BN, T::THREADS, VEC> copy_b(gemm.b, 0, origin.col);
    // Closes a group also where there is nothing to copy, so that the newest AHEAD - 1 groups are always those of the tiles not needed yet.
    const auto copy = [&](int tile) {
        if (tile < tiles) {
            Stage& stage = stages[tile % T::STAGES];
            const int depth = within(gemm.k(), static_cast<std::size_t>(tile) * T::BK, T::BK);
            copy_a.copy(stage.a, rows, depth, Stage::quad_of_a);
            copy_b.copy(stage.b, depth, cols, Stage::quad_of_b);
            copy_a.move_right();
            copy_b.move_down();
        }
        course::ptx::cp_async_commit();
    };

    const TensorLane<T> lane;
    for (int tile = 0; tile < AHEAD; ++tile)
        copy(tile);
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        course::ptx::cp_async_wait<AHEAD - 1>();
        __syncthreads();  // the tile is there, and nobody needs the one before it any more: its stage is free
        copy(tile + AHEAD);
#pragma unroll 1  // unrolled, loads of all runs would come first, and take more registers than there are
        for (unsigned k = 0; k < T::BK; k += T::RUN)
            multiply_run<T>(stages[tile % T::STAGES], lane, k, sums);
    }
}

// Is there neither an Inf nor a NaN among them? 0 times a number is 0, times an Inf or a NaN it is NaN.
template <class T>
__device__ bool all_finite(const TensorSums<T>& sums) {
    float zero = 0;
#pragma unroll
    for (int i = 0; i < T::DOWN; ++i) {
#pragma unroll
        for (int j = 0; j < T::ACROSS; ++j) {
#pragma unroll
            for (int n = 0; n < 4; ++n)
                zero += 0 * sums[i][j][n];
        }
    }
    return zero == 0;
}

// The tile of C at `origin` in FP32, element by element: slow, but only where there are Inf or NaN.
template <class T>
__device__ void write_fp32_tile(const Sgemm& gemm, const Origin& origin) {
    for (int element = static_cast<int>(threadIdx.x); element < T::BM * T::BN; element += T::THREADS) {
        const std::size_t row = origin.row + element / T::BN;
        const std::size_t col = origin.col + element % T::BN;
        if (row >= gemm.m() || col >= gemm.n()) continue;
        float sum = 0;
        for (std::size_t k = 0; k < gemm.k(); ++k)
            sum += gemm.a(row, k) * gemm.b(k, col);
        write_element(gemm, row, col, sum);
    }
}

// Writes the block's results to the tile of C at `origin`. Of each 32 columns a lane has the 8 from 8 t on: columns 2 t and 2 t + 1
// of four instructions.
template <class T, int VEC>
__device__ void write_tensor_tile(const Sgemm& gemm, const Origin& origin, const TensorSums<T>& sums) {
    const TensorLane<T> lane;
#pragma unroll
    for (int i = 0; i < T::DOWN * 2; ++i) {
#pragma unroll
        for (int j = 0; j < T::ACROSS; j += 4) {
            float neighbours[8];
#pragma unroll
            for (int n = 0; n < 8; ++n)
                neighbours[n] = sums[i / 2][j + n % 4][i % 2 * 2 + n / 4];
            write_row_of_packs<VEC, 1>(gemm, origin.row + lane.row + lane.g + i * 8,
                                       origin.col + lane.col + lane.t * 8 + j * 8, neighbours);
        }
    }
}

}  // namespace gemm
