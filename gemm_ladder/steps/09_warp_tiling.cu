// Step 9: a tile for each warp.
//
// Change:     starting from step 7, without the XOR of step 8, the block's tile is divided among
//             its warps first, 64 x 64 for each, then among the lanes: 4 x 8 lanes with 16 x 8
//             results. 128 threads instead of 256; BK = 16. A tile that is in range as a whole is
//             loaded after one check. Fragments of A are loaded before those of B.
// Why:        a warp of step 7 has 16 rows of 128 columns: for each k it reads 144 words for 2048
//             multiply-adds. A square tile needs less: 128 words for 4096. A lane reads 16 + 8
//             words for 128 multiply-adds, 0.19 for each, instead of 0.25. Wavefronts of a warp,
//             for each k: 4 of A and 2 of B for 128 multiply-adds of a lane; step 7: 2 of A and 4
//             of B, also 6, for only 64.
// Prediction: for 512 multiply-adds 24 shared loads instead of 32, and 557 instructions instead of
//             600: 92 % are multiply-adds. (For the time we predicted no figure; the instructions
//             allow 8 %.) The price is register pressure: with 128 sums per thread, two blocks fill
//             the registers with 8 of 64 possible warps. But each warp has 128 independent
//             multiply-adds for each k, enough to hide its shared loads.
// Counter:    l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum falls to 0.5 of step 7's,
//             smsp__inst_executed_op_shared_ld.sum to 0.75.
// Measured:   not as predicted: about 47 TFLOP/s at 4096^3, less than step 7 (49.0) and than 09a
//             alone (48.8). The wavefronts saved were probably hidden. Tiles twice as deep (09b)
//             cost more than everything else gained. 1024^3: 178 us, step 7 101. Both have 64 tiles
//             for 132 SMs; here, too, 09b costs the time.
// Limit:      multiply-adds (counters: FMA 73 % busy, issue slots 77 %).
// Next:       the transposed stores of A: with BK = 16, each store puts four words into each bank
//             that it uses.
//
// Four kernels separate the changes. 09a_larger_thread_tile, 09b_larger_bk and 09c_one_check are in
// 09a_larger_thread_tile.cu and keep the thread layout of step 7. 09_warp_tiling, here, changes the
// layout, and the order in which fragments are loaded.
#include "../edges.cuh"
#include "../launch.hpp"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int BM = 128;  // a block's tile of C: BM x BN
constexpr int BN = 128;
constexpr int BK = 16;  // columns of A's tile, rows of B's
constexpr int WM = 64;  // a warp's tile of C: WM x WN
constexpr int WN = 64;
constexpr int TM = 16;  // a thread's results: TM x TN
constexpr int TN = 8;
constexpr int LANES_M = WM / TM;  // a warp's lanes: LANES_M x LANES_N
constexpr int LANES_N = WN / TN;
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
static_assert(LANES_M * LANES_N == 32, "WM / TM x WN / TN must be the 32 lanes of a warp");
static_assert(BM % WM == 0 && BN % WN == 0, "the warps' tiles must cover the block's");
static_assert(TM % 4 == 0 && TN % 4 == 0, "a fragment is a whole number of float4");
static_assert(BK % 2 == 0, "BK must be even: the ping-pong buffer has to be back at 0 when a tile ends");

// 09_warp_tiling: compact tiles for warps.
// Change:     which results the lanes of a warp have, and the order in which fragments are loaded.
//             The loads of tiles are those of 09c.
// Prediction: 6 wavefronts for each k instead of 8.
// Measured:   46.9 TFLOP/s (2928 us), 3 % faster than 09c. But the gain does not come from the
//             shape of a warp's tile. It comes from the order in which fragments are loaded: in the
//             order of 09c the kernel takes 3030 us (see load_fragments).
__global__ __launch_bounds__(THREADS, 2) void sgemm_warp_tiling(Sgemm gemm) {
    alignas(16) __shared__ float a_tile[2][BK][BM];  // two stages, transposed
    alignas(16) __shared__ float b_tile[2][BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: a warp has WM x WN of the tile. A lane has groups of four rows, LANES_M groups
    // apart, and groups of four columns, LANES_N groups apart; the first starts at (row, col).
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int row = warp / (BN / WN) * WM + lane / LANES_N * 4;
    const int col = warp % (BN / WN) * WN + lane % LANES_N * 4;
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
        if (rows_fit && k0 + BK <= gemm.k()) {  // the whole tile is in range
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
        if (k0 + BK <= gemm.k() && cols_fit) {
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
    // A before B, unlike 09c: the compiler then schedules the main loop better. B before A took
    // 3030 us.
    const auto load_fragments = [&](int stage, int k, int buffer) {
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            load4(&a_tile[stage][k][row + i * LANES_M], &a_fragment[buffer][i]);
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            load4(&b_tile[stage][k][col + j * LANES_N], &b_fragment[buffer][j]);
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
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(gemm, row0 + row + i / 4 * LANES_M * 4 + i % 4, col0 + col + j * LANES_N, &sums[i][j]);
    }
}

}  // namespace

Kernel warp_tiling() {
    return block_per_tile_of_aligned_rows<BM, BN, THREADS, sgemm_warp_tiling>();
}

}  // namespace gemm
