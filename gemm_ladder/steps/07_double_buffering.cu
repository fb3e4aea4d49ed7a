// Step 7: the next tile is loaded during this one.
//
// Change:     two stages in shared memory; a stage is room for one tile of A and one of B. The next
//             tile is loaded to registers before the arithmetic of this one, and stored to the
//             other stage after it. There are two sets of fragments as well: those of k + 1 are
//             read while those of k are multiplied.
// Why:        step 6 exposes the latency of global memory once per tile. Here each warp has 448
//             multiply-adds between a load from global memory and its use, and 64 between a load
//             from shared memory and its use. A warp that stores does not have to wait for one that
//             reads, so one barrier per tile is enough.
// Prediction: as many instructions; warps no longer wait for global loads. (For the time we
//             predicted no figure: the other block of the SM hid much already, and we could not say
//             how much.) Registers: 8 for the tile and 16 for the fragments in flight, up to the limit
//             of 128 that two blocks leave; shared memory 16 KiB instead of 8.
// Counter:    smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active and
//             ..._stalled_barrier_... fall.
// Measured:   about 49 TFLOP/s, 1.3 times step 6 and 96 % of cuBLAS.
// Limit:      multiply-adds (counters: FMA 76 % busy, issue slots 87 %).
// Next:       each transposed store of A puts two words into each of its banks.
//
// Two kernels separate the changes: 07a_two_stages has the two stages, and 07_double_buffering the
// two sets of fragments as well.
#include "../edges.cuh"
#include "../launch.hpp"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int BM = 128;  // a block's tile of C: BM x BN
constexpr int BN = 128;
constexpr int BK = 8;  // columns of A's tile, rows of B's
constexpr int TM = 8;  // a thread's results: TM x TN
constexpr int TN = 8;
constexpr int ROWS = BM / TM;  // of threads
constexpr int COLS = BN / TN;
constexpr int THREADS = ROWS * COLS;
static_assert(BM % TM == 0 && BN % TN == 0, "TM must divide BM, TN must divide BN");
static_assert(TM % 4 == 0 && TN % 4 == 0, "a fragment is a whole number of float4");
static_assert(BM * BK == THREADS * 4 && BK * BN == THREADS * 4,
              "each thread loads a float4 of A and one of B");

// 07a_two_stages: two stages in shared memory.
// Change:     as above, with the fragments of step 6, which are read directly before they are used.
// Prediction: no figure; most of the gain, because loads from global memory take longer than those
//             from shared memory.
// Measured:   as predicted: 1.40 times as fast as step 6 at 1024 x 1024 x 1024, 1.24 times at 8192
//             x 8192 x 8192 (H200).
__global__ __launch_bounds__(THREADS, 2) void sgemm_two_stages(Sgemm gemm) {
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
    // Thread to loads: a float4 of A's tile, from (a_row, a_col) on, and a float4 of B's, from
    // (b_row, b_col) on.
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

    float4 a_next;  // what this thread has loaded of the next tile of A
    float4 b_next;  // and of B
    const auto load_next = [&](std::size_t k0) {
        const int depth = remaining(gemm.k(), k0);
        a_next = load4_or_zero(a, a_row < rows ? depth - a_col : 0);
        b_next = load4_or_zero(b, b_row < depth ? cols - b_col : 0);
        a += BK;
        b += BK * ldb;
    };
    const auto store_next = [&](int stage) {
        a_tile[stage][a_col + 0][a_row] = a_next.x;
        a_tile[stage][a_col + 1][a_row] = a_next.y;
        a_tile[stage][a_col + 2][a_row] = a_next.z;
        a_tile[stage][a_col + 3][a_row] = a_next.w;
        *reinterpret_cast<float4*>(&b_tile[stage][b_row][b_col]) = b_next;
    };

    // Prologue (day 38): the first tile.
    int stage = 0;
    load_next(0);
    store_next(stage);
    __syncthreads();          // the first tiles are complete
    float sums[TM][TN] = {};  // TM x TN results of this thread
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        load_next(k0 + BK);  // after the last tile: zeros, which are not used
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_fragment[TM];  // TM values of a column of A
            float b_fragment[TN];  // TN values of a row of B
#pragma unroll
            for (int i = 0; i < TM; i += 4)
                load4(&a_tile[stage][k][ty * 4 + i * ROWS], &a_fragment[i]);
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                load4(&b_tile[stage][k][tx * 4 + j * COLS], &b_fragment[j]);
#pragma unroll
            for (int i = 0; i < TM; ++i) {  // snake: even rows to the right, odd rows back
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_fragment[i] * b_fragment[j];
                }
            }
        }
        stage ^= 1;
        store_next(stage);
        __syncthreads();  // the next tiles are complete; these are safe to overwrite
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = ty * 4 + i / 4 * ROWS * 4 + i % 4;
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(gemm, row0 + row, col0 + tx * 4 + j * COLS, &sums[i][j]);
    }
}

static_assert(BK % 2 == 0, "BK must be even: the ping-pong buffer has to be back at 0 when a tile ends");

// 07_double_buffering: and two sets of fragments.
// Change:     the fragments of k + 1 are read before those of k are multiplied.
// Prediction: no figure.
// Measured:   1.08 times as fast as 07a at both sizes.
__global__ __launch_bounds__(THREADS, 2) void sgemm_double_buffering(Sgemm gemm) {
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
    // Thread to loads: a float4 of A's tile, from (a_row, a_col) on, and a float4 of B's, from
    // (b_row, b_col) on.
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

    float4 a_next;  // what this thread has loaded of the next tile of A
    float4 b_next;  // and of B
    const auto load_next = [&](std::size_t k0) {
        const int depth = remaining(gemm.k(), k0);
        a_next = load4_or_zero(a, a_row < rows ? depth - a_col : 0);
        b_next = load4_or_zero(b, b_row < depth ? cols - b_col : 0);
        a += BK;
        b += BK * ldb;
    };
    const auto store_next = [&](int stage) {
        a_tile[stage][a_col + 0][a_row] = a_next.x;
        a_tile[stage][a_col + 1][a_row] = a_next.y;
        a_tile[stage][a_col + 2][a_row] = a_next.z;
        a_tile[stage][a_col + 3][a_row] = a_next.w;
        *reinterpret_cast<float4*>(&b_tile[stage][b_row][b_col]) = b_next;
    };
    float a_fragment[2][TM];  // TM values of a column of A: those of k, and those of k + 1
    float b_fragment[2][TN];  // TN values of a row of B
    // B before A, unlike step 6: with A first, the compiler spills registers (day 15; nvcc 13.0,
    // sm_90).
    const auto load_fragments = [&](int stage, int k, int buffer) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            load4(&b_tile[stage][k][tx * 4 + j * COLS], &b_fragment[buffer][j]);
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            load4(&a_tile[stage][k][ty * 4 + i * ROWS], &a_fragment[buffer][i]);
    };

    // Prologue: the first tile, and the fragments of its first k.
    int stage = 0;
    load_next(0);
    store_next(stage);
    __syncthreads();  // the first tiles are complete
    load_fragments(stage, 0, 0);
    float sums[TM][TN] = {};  // TM x TN results of this thread
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
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

Kernel two_stages() {
    return block_per_tile_of_aligned_rows<BM, BN, THREADS, sgemm_two_stages>();
}

Kernel double_buffering() {
    return block_per_tile_of_aligned_rows<BM, BN, THREADS, sgemm_double_buffering>();
}

}  // namespace gemm
