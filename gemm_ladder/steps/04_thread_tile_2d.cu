// Step 4: TM x TN results for each thread.
//
// Change:     a thread has TM x TN = 8 x 8 results instead of 8 x 1; 256 threads have a tile of 128
//             x 128.
// Why:        TM + TN words from shared memory serve TM * TN multiply-adds: 0.25 words for each,
//             instead of 1.125.
// Prediction: 128 multiply-adds per cycle need 32 words, just what shared memory returns to lanes:
//             arithmetic can become the limit, and by the number of words this step should be 4.5
//             times as fast as step 3.
//             Global loads: 1/64 per multiply-add. In SASS, 80 shared loads for 512 multiply-adds,
//             700 instructions in all. The price is register pressure: 64 sums, 16 operands and
//             addresses need up to 128 registers. 256 threads x 128 registers x 4 bytes = 128 KB,
//             so two blocks fit on an SM, which is 16 of 64 warps. The 2 in __launch_bounds__ makes
//             the compiler observe this limit. TM = TN = 16 would need over 255 registers per
//             thread, more than there are.
// Counter:    smsp__inst_executed_op_shared_ld.sum falls to 0.4 of step 3's;
//             sm__inst_executed_pipe_fma.sum.pct_of_peak_sustained_active.
// Measured:   not as predicted: about 30 TFLOP/s, twice step 3, at 25 % occupancy. Neither shared
//             memory nor arithmetic is the limit. Probably the blocks wait: with two blocks on an
//             SM, few warps are left to issue instructions while one block loads or waits at a
//             barrier (see steps 6 and 7). 1024^3 is even slower than step 3, 168 us instead of
//             131: 64 tiles for 132 SMs.
// Limit:      of 04a shared memory (counters: 59 % busy; L1, in the same unit, 63 %), of 04b latency
//             (issue slots 60 %), of 04 issue slots (61 %).
// Next:       of 699 instructions, 187 are not multiply-adds.
//
// Three kernels separate the changes: 04a_larger_tile enlarges the block's tile and the results per
// thread, 04b_plain_loads gives a thread TM x TN results, and 04_thread_tile_2d saves work on
// addresses.
#include "../edges.cuh"
#include "../launch.hpp"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int BM = 128;  // a block's tile of C: BM x BN
constexpr int BN = 128;
constexpr int BK = 8;  // columns of A's tile, rows of B's

constexpr int TALL = 16;  // of 04a: a thread's results, TALL x 1
constexpr int TALL_THREADS = BM / TALL * BN;
static_assert(BM * BK == TALL_THREADS && BK * BN == TALL_THREADS,
              "each thread loads one element of A and one of B");

// 04a_larger_tile: a larger tile for the block.
// Change:     step 3's kernel with a tile of 128 x 128. That takes twice as many results per thread
//             (16 x 1) and twice as many threads (1024). With more than 32 registers each, an SM
//             has room for one block.
// Prediction: half of step 3's global loads, which are not the limit; 1.0625 words from shared
//             memory per multiply-add instead of 1.125: at most 6 % faster.
// Measured:   not as predicted: 17.2 TFLOP/s at 4096^3 (7987 us), 14 % faster. That is 27 % of the
//             limit, and 32 words per cycle would allow 24 %: our model is wrong. A word for
//             several lanes, a broadcast, costs less than one word for each lane.
__global__ __launch_bounds__(TALL_THREADS) void sgemm_larger_tile(Sgemm gemm) {
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: rows ty * TALL to ty * TALL + TALL - 1 of column tx of the tile.
    const int ty = thread / BN;
    const int tx = thread % BN;
    // Thread to loads: element (a_row, a_col) of A's tile and (b_row, b_col) of B's.
    const int a_row = thread / BK;
    const int a_col = thread % BK;
    const int b_row = thread / BN;
    const int b_col = thread % BN;

    float sums[TALL] = {};  // TALL x 1 results of this thread
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        a_tile[a_row][a_col] = load_or_zero(gemm.a, row0 + a_row, k0 + a_col);
        b_tile[b_row][b_col] = load_or_zero(gemm.b, k0 + b_row, col0 + b_col);
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float b_value = b_tile[k][tx];
#pragma unroll
            for (int i = 0; i < TALL; ++i)
                sums[i] += a_tile[ty * TALL + i][k] * b_value;
        }
        __syncthreads();  // the tiles are safe to overwrite
    }
#pragma unroll
    for (int i = 0; i < TALL; ++i)
        store(gemm, row0 + ty * TALL + i, col0 + tx, sums[i]);
}

constexpr int TM = 8;  // a thread's results: TM x TN
constexpr int TN = 8;
constexpr int ROWS = BM / TM;  // of threads
constexpr int COLS = BN / TN;
constexpr int THREADS = ROWS * COLS;
static_assert(BM % TM == 0 && BN % TN == 0, "TM must divide BM, TN must divide BN");
static_assert(BM * BK % THREADS == 0 && BK * BN % THREADS == 0,
              "each thread loads the same number of elements");

// 04b_plain_loads: the thread's tile.
// Change:     TM x TN results for each thread. A thread loads four elements of A and four of B,
//             each as in step 3.
// Prediction: the whole gain of step 4, but for the time of some 25 integer instructions of 722 in
//             the loop, which compute addresses and bounds.
// Measured:   28.1 TFLOP/s (4891 us), 1.6 times 04a: most of the gain, as predicted.
__global__ __launch_bounds__(THREADS, 2) void sgemm_plain_loads(Sgemm gemm) {
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: rows ty, ty + ROWS... and columns tx, tx + COLS... of the tile: at each load of
    // b_tile and each store to C, adjacent threads have adjacent elements. With contiguous results,
    // a load of A would take 2 wavefronts (step 8) instead of 1, and one of B 4 instead of 1.
    const int ty = thread / COLS;
    const int tx = thread % COLS;
    // Thread to loads: element (a_row, a_col) of A's tile and those THREADS / BK rows further down;
    // of B's likewise.
    const int a_row = thread / BK;
    const int a_col = thread % BK;
    const int b_row = thread / BN;
    const int b_col = thread % BN;

    float sums[TM][TN] = {};  // TM x TN results of this thread
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
#pragma unroll
        for (int down = 0; down < BM; down += THREADS / BK)
            a_tile[a_row + down][a_col] = load_or_zero(gemm.a, row0 + a_row + down, k0 + a_col);
#pragma unroll
        for (int down = 0; down < BK; down += THREADS / BN)
            b_tile[b_row + down][b_col] = load_or_zero(gemm.b, k0 + b_row + down, col0 + b_col);
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    sums[i][j] += a_tile[ty + i * ROWS][k] * b_tile[k][tx + j * COLS];
            }
        }
        __syncthreads();  // the tiles are safe to overwrite
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j)
            store(gemm, row0 + ty + i * ROWS, col0 + tx + j * COLS, sums[i][j]);
    }
}

// 04_thread_tile_2d: addresses hoisted out of the loop.
// Change:     a thread computes its address in A and in B once, and moves both along K. How much
//             of the tile is in range is counted once for all of its elements. The address of a
//             row of C is computed once, too.
// Prediction: 699 instructions in the loop instead of 722; at most 3 % faster.
// Measured:   29.7 TFLOP/s (4624 us): 6 % faster than 04b, more than predicted.
__global__ __launch_bounds__(THREADS, 2) void sgemm_thread_tile_2d(Sgemm gemm) {
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: rows ty, ty + ROWS... and columns tx, tx + COLS... of the tile: at each load of
    // b_tile and each store to C, adjacent threads have adjacent elements. With contiguous results,
    // a load of A would take 2 wavefronts (step 8) instead of 1, and one of B 4 instead of 1.
    const int ty = thread / COLS;
    const int tx = thread % COLS;
    // Thread to loads: element (a_row, a_col) of A's tile and those THREADS / BK rows further down;
    // of B's likewise.
    const int a_row = thread / BK;
    const int a_col = thread % BK;
    const int b_row = thread / BN;
    const int b_col = thread % BN;
    const std::size_t lda = gemm.a.leading_dimension();
    const std::size_t ldb = gemm.b.leading_dimension();
    const float* a = gemm.a.data() + (row0 + a_row) * lda + a_col;
    const float* b = gemm.b.data() + b_row * ldb + col0 + b_col;
    const int rows = remaining(gemm.m(), row0);  // of the tile
    const int cols = remaining(gemm.n(), col0);

    float sums[TM][TN] = {};  // TM x TN results of this thread
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        const int depth = remaining(gemm.k(), k0);
#pragma unroll
        for (int down = 0; down < BM; down += THREADS / BK)
            a_tile[a_row + down][a_col] = a_row + down < rows && a_col < depth ? a[down * lda] : 0.0f;
#pragma unroll
        for (int down = 0; down < BK; down += THREADS / BN)
            b_tile[b_row + down][b_col] = b_row + down < depth && b_col < cols ? b[down * ldb] : 0.0f;
        a += BK;
        b += BK * ldb;
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
#pragma unroll
            for (int i = 0; i < TM; ++i) {
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    sums[i][j] += a_tile[ty + i * ROWS][k] * b_tile[k][tx + j * COLS];
            }
        }
        __syncthreads();  // the tiles are safe to overwrite
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const std::size_t row = row0 + ty + i * ROWS;
        const std::size_t col = col0 + tx;
        if (row >= gemm.m() || col >= gemm.n()) continue;
        float* const c = &gemm.c(row, col);
        const std::size_t cols_left = gemm.n() - col;
#pragma unroll
        for (std::size_t j = 0; j < TN; ++j) {
            if (j * COLS < cols_left) c[j * COLS] = updated(gemm, sums[i][j], c[j * COLS]);
        }
    }
}

}  // namespace

Kernel larger_tile() {
    return block_per_tile<BM, BN, TALL_THREADS, sgemm_larger_tile>();
}

Kernel plain_loads() {
    return block_per_tile<BM, BN, THREADS, sgemm_plain_loads>();
}

Kernel thread_tile_2d() {
    return block_per_tile<BM, BN, THREADS, sgemm_thread_tile_2d>();
}

}  // namespace gemm
