// Step 9, preparation: 16 x 8 results for a thread, tiles twice as deep, one bounds check. Three
// kernels of one template, which keep the thread layout of step 7. 09_warp_tiling.cu has the
// step's head, and the kernel that changes the layout.
#include "../edges.cuh"
#include "../launch.hpp"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int BM = 128;  // a block's tile of C: BM x BN
constexpr int BN = 128;
constexpr int TM = 16;  // a thread's results: TM x TN
constexpr int TN = 8;
constexpr int ROWS = BM / TM;  // of threads: 09a to 09c
constexpr int COLS = BN / TN;
constexpr int THREADS = ROWS * COLS;
static_assert(BM % TM == 0 && BN % TN == 0, "TM must divide BM, TN must divide BN");
static_assert(TM % 4 == 0 && TN % 4 == 0, "a fragment is a whole number of float4");

// 09a_larger_thread_tile <8, false>: 128 threads with 16 x 8 results.
// Prediction: 0.19 words from shared memory for a multiply-add instead of 0.25. A warp has 32 rows
//             of 128 columns: 8 wavefronts for each k and 128 multiply-adds of a lane, step 7: 12.
// Measured:   48.8 TFLOP/s at 4096^3 (2818 us), as step 7: the wavefronts saved were probably
//             hidden.
//
// 09b_larger_bk <16, false>: tiles twice as deep.
// Prediction: half as many barriers, and twice as many bytes in flight between them. Against it:
//             a store of A puts four words into each bank that it uses, not two.
// Measured:   not as predicted: 43.7 TFLOP/s (3142 us), 11 % more time than 09a. At 1024^3 185 us
//             instead of 108. By the counters (4096^3) bank conflicts grow from 17 to 51 million
//             of 353 million wavefronts. Shared memory is 43 % busy, as in 09a, so its throughput
//             is not the reason. But warps wait for it for 13 % of their time, in 09a for less
//             than 6 %.
//
// 09c_one_check <16, true>: one bounds check for a tile that is in range as a whole.
// Prediction: no branch between the four loads of A's tile, nor between the four of B's, so they
//             are issued one after the other. SASS, the listing, contains both paths; a warp
//             executes one.
// Measured:   45.4 TFLOP/s (3027 us), 4 % faster than 09b; at 1024^3 179 us.
template <int BK, bool ONE_CHECK>
__global__ __launch_bounds__(THREADS, 2) void sgemm_larger_thread_tile(Sgemm gemm) {
    static_assert(BK % 2 == 0, "BK must be even: the ping-pong buffer has to be back at 0 when a tile ends");
    alignas(16) __shared__ float a_tile[2][BK][BM];  // two stages, transposed
    alignas(16) __shared__ float b_tile[2][BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: rows ty * 4 to ty * 4 + 3 of the tile, the same ROWS * 4 rows further down, and
    // columns likewise, as in step 6.
    const int ty = thread / COLS;
    const int tx = thread % COLS;
    // Thread to loads: a float4 of A's tile, from (a_row, a_col) on, and those A_DOWN rows further
    // down; of B's likewise.
    constexpr int A_DOWN = THREADS * 4 / BK;
    constexpr int B_DOWN = THREADS * 4 / BN;
    const int a_row = thread / (BK / 4);
    const int a_col = thread % (BK / 4) * 4;
    const int b_row = thread / (BN / 4);
    const int b_col = thread % (BN / 4) * 4;
    const std::size_t lda = gemm.a.leading_dimension();
    const std::size_t ldb = gemm.b.leading_dimension();
    const float* a = gemm.a.data() + (row0 + a_row) * lda + a_col;
    const float* b = gemm.b.data() + b_row * ldb + col0 + b_col;
    const int rows = remaining(gemm.m(), row0);  // of the tile
    const int cols = remaining(gemm.n(), col0);
    const bool rows_fit = row0 + BM <= gemm.m();  // all of the tile's
    const bool cols_fit = col0 + BN <= gemm.n();

    float4 a_next[BM / A_DOWN];  // what this thread has loaded of the next tile of A
    float4 b_next[BK / B_DOWN];  // and of B
    const auto load_next = [&](std::size_t k0) {
        if (ONE_CHECK && rows_fit && k0 + BK <= gemm.k()) {  // the whole tile is in range
#pragma unroll
            for (int n = 0; n < BM / A_DOWN; ++n)
                a_next[n] = *reinterpret_cast<const float4*>(a + n * A_DOWN * lda);
        } else {
            const int depth = remaining(gemm.k(), k0);
#pragma unroll
            for (int n = 0; n < BM / A_DOWN; ++n)
                a_next[n] =
                    load4_or_zero(a + n * A_DOWN * lda, a_row + n * A_DOWN < rows ? depth - a_col : 0);
        }
        if (ONE_CHECK && k0 + BK <= gemm.k() && cols_fit) {
#pragma unroll
            for (int n = 0; n < BK / B_DOWN; ++n)
                b_next[n] = *reinterpret_cast<const float4*>(b + n * B_DOWN * ldb);
        } else {
            const int depth = remaining(gemm.k(), k0);
#pragma unroll
            for (int n = 0; n < BK / B_DOWN; ++n)
                b_next[n] =
                    load4_or_zero(b + n * B_DOWN * ldb, b_row + n * B_DOWN < depth ? cols - b_col : 0);
        }
    };
    const auto store_next = [&](int stage) {
#pragma unroll
        for (int n = 0; n < BM / A_DOWN; ++n) {
            a_tile[stage][a_col + 0][a_row + n * A_DOWN] = a_next[n].x;
            a_tile[stage][a_col + 1][a_row + n * A_DOWN] = a_next[n].y;
            a_tile[stage][a_col + 2][a_row + n * A_DOWN] = a_next[n].z;
            a_tile[stage][a_col + 3][a_row + n * A_DOWN] = a_next[n].w;
        }
#pragma unroll
        for (int n = 0; n < BK / B_DOWN; ++n)
            *reinterpret_cast<float4*>(&b_tile[stage][b_row + n * B_DOWN][b_col]) = b_next[n];
    };
    float a_fragment[2][TM];  // TM values of a column of A: those of k, and those of k + 1
    float b_fragment[2][TN];  // TN values of a row of B
    const auto load_fragments = [&](int stage, int k, int buffer) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            load4(&b_tile[stage][k][tx * 4 + j * COLS], &b_fragment[buffer][j]);
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            load4(&a_tile[stage][k][ty * 4 + i * ROWS], &a_fragment[buffer][i]);
    };

    // Prologue (day 38): the first tile, and the fragments of its first k.
    int stage = 0;
    load_next(0);
    store_next(stage);
    __syncthreads();  // the first tiles are complete
    load_fragments(stage, 0, 0);
    float sums[TM][TN] = {};  // TM x TN results of this thread
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        a += BK;
        b += BK * ldb;
        load_next(k0 + BK);  // after the last tile: zeros, which are not used
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 == BK) {
                stage ^= 1;
                store_next(stage);
                __syncthreads();  // the next tiles are complete; these are safe to overwrite
            }
            load_fragments(stage, (k + 1) % BK, (k + 1) % 2);
#pragma unroll
            for (int i = 0; i < TM; ++i) {  // snake: even rows to the right, odd rows back
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_fragment[k % 2][i] * b_fragment[k % 2][j];
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = ty * 4 + i / 4 * ROWS * 4 + i % 4;
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(gemm, row0 + row, col0 + tx * 4 + j * COLS, &sums[i][j]);
    }
}

}  // namespace

Kernel larger_thread_tile() {
    return block_per_tile_of_aligned_rows<BM, BN, THREADS, sgemm_larger_thread_tile<8, false>>();
}

Kernel larger_bk() {
    return block_per_tile_of_aligned_rows<BM, BN, THREADS, sgemm_larger_thread_tile<16, false>>();
}

Kernel one_check() {
    return block_per_tile_of_aligned_rows<BM, BN, THREADS, sgemm_larger_thread_tile<16, true>>();
}

}  // namespace gemm
