// Step 6: four floats at a time.
//
// Change:     global memory and fragments are read, and C is written, as float4. For that A's tile
//             is stored transposed, and a thread's rows and columns come in groups of four. Rows
//             must be 16-byte aligned; where they are not, beyond/unaligned.cu runs.
// Why:        moving 16 bytes takes one instruction instead of four, and its address is computed
//             once.
// Prediction: for 512 multiply-adds 32 shared loads instead of 80, 2 global loads instead of 8, 5
//             shared stores instead of 8; 600 instructions instead of 700. Shared memory still
//             returns 0.25 words to lanes per multiply-add, which allows 128 multiply-adds per
//             cycle, so it should not be the limit.
// Counter:    smsp__inst_executed_op_shared_ld.sum falls to 0.4 of step 5's,
//             smsp__inst_executed_op_global_ld.sum to 0.25.
// Measured:   as predicted: about 37 TFLOP/s, 1.2 times step 5. The instructions explain 700 / 600
//             = 1.17.
// Limit:      issue slots (counters: 64 % busy, FMA 56 %).
// Next:       between the barrier that ends one tile and the barrier that completes the next, a
//             block only loads. All its warps wait for the same loads, and none of them multiplies.
//
// Three kernels separate the changes: 06a_transposed stores A's tile transposed, 06b_fours reads
// fragments as float4, and 06_vectorized moves float4 in global memory.
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
static_assert(BM * BK % THREADS == 0 && BK * BN % THREADS == 0,
              "each thread loads the same number of elements");

// 06a_transposed: A's tile, transposed.
// Change:     element (row, k) of A is in a_tile[k][row], so that a fragment of A is part of a row.
// Prediction: slower than step 5. Along k the compiler read A as float4; the elements are now ROWS
//             words apart, so it needs one load each: 128 shared loads for 512 multiply-adds
//             instead of 80. A warp stores 4 rows and 8 values of k: 8 words in each of 4 banks, 8
//             wavefronts instead of 1.
// Measured:   as predicted: 3 % slower than step 5.
__global__ __launch_bounds__(THREADS, 2) void sgemm_transposed(Sgemm gemm) {
    __shared__ float a_tile[BK][BM];  // transposed
    __shared__ float b_tile[BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: rows ty, ty + ROWS... and columns tx, tx + COLS... of the tile, as in step 4.
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
            a_tile[a_col][a_row + down] = a_row + down < rows && a_col < depth ? a[down * lda] : 0.0f;
#pragma unroll
        for (int down = 0; down < BK; down += THREADS / BN)
            b_tile[b_row + down][b_col] = b_row + down < depth && b_col < cols ? b[down * ldb] : 0.0f;
        a += BK;
        b += BK * ldb;
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_fragment[TM];  // TM values of a column of A
            float b_fragment[TN];  // TN values of a row of B
#pragma unroll
            for (int i = 0; i < TM; ++i)
                a_fragment[i] = a_tile[k][ty + i * ROWS];
#pragma unroll
            for (int j = 0; j < TN; ++j)
                b_fragment[j] = b_tile[k][tx + j * COLS];
#pragma unroll
            for (int i = 0; i < TM; ++i) {  // snake: even rows to the right, odd rows back
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_fragment[i] * b_fragment[j];
                }
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

// 06b_fours: fragments as float4.
// Change:     a thread's rows and columns come in groups of four, so that four elements of a
//             fragment are adjacent.
// Prediction: 32 shared loads for 512 multiply-adds instead of 128. (For the time we predicted no
//             figure.)
// Measured:   1.13 times as fast as 06a, 1.10 times as fast as step 5.
__global__ __launch_bounds__(THREADS, 2) void sgemm_fours(Sgemm gemm) {
    alignas(16) __shared__ float a_tile[BK][BM];  // transposed
    alignas(16) __shared__ float b_tile[BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: rows ty * 4 to ty * 4 + 3 of the tile, the same ROWS * 4 rows further down, and
    // columns likewise. At each float4 of b_tile and of C, adjacent threads have adjacent float4.
    // Result i is in row ty * 4 + i / 4 * ROWS * 4 + i % 4; where i is a multiple of 4, as at the
    // loads, that is ty * 4 + i * ROWS.
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
            a_tile[a_col][a_row + down] = a_row + down < rows && a_col < depth ? a[down * lda] : 0.0f;
#pragma unroll
        for (int down = 0; down < BK; down += THREADS / BN)
            b_tile[b_row + down][b_col] = b_row + down < depth && b_col < cols ? b[down * ldb] : 0.0f;
        a += BK;
        b += BK * ldb;
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_fragment[TM];  // TM values of a column of A
            float b_fragment[TN];  // TN values of a row of B
#pragma unroll
            for (int i = 0; i < TM; i += 4)
                load4(&a_tile[k][ty * 4 + i * ROWS], &a_fragment[i]);
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                load4(&b_tile[k][tx * 4 + j * COLS], &b_fragment[j]);
#pragma unroll
            for (int i = 0; i < TM; ++i) {  // snake: even rows to the right, odd rows back
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_fragment[i] * b_fragment[j];
                }
            }
        }
        __syncthreads();  // the tiles are safe to overwrite
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = ty * 4 + i / 4 * ROWS * 4 + i % 4;
#pragma unroll
        for (int j = 0; j < TN; ++j)
            store(gemm, row0 + row, col0 + tx * 4 + j / 4 * COLS * 4 + j % 4, sums[i][j]);
    }
}

static_assert(BM * BK == THREADS * 4 && BK * BN == THREADS * 4,
              "each thread loads a float4 of A and one of B");

// 06_vectorized: float4 in global memory.
// Change:     a thread loads one float4 of A and one of B, and stores 16 float4 of C.
// Prediction: 2 global loads instead of 8 for each tile. A warp stores 16 rows and 2 float4 of A,
//             word by word: 2 wavefronts for each word instead of 8. (For the time we predicted no
//             figure.)
// Measured:   1.10 times as fast as 06b.
__global__ __launch_bounds__(THREADS, 2) void sgemm_vectorized(Sgemm gemm) {
    alignas(16) __shared__ float a_tile[BK][BM];  // transposed
    alignas(16) __shared__ float b_tile[BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: rows ty * 4 to ty * 4 + 3 of the tile, the same ROWS * 4 rows further down, and
    // columns likewise. At each float4 of b_tile and of C, adjacent threads have adjacent float4.
    // Result i is in row ty * 4 + i / 4 * ROWS * 4 + i % 4; where i is a multiple of 4, as at the
    // loads, that is ty * 4 + i * ROWS.
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

    float sums[TM][TN] = {};  // TM x TN results of this thread
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        const int depth = remaining(gemm.k(), k0);
        const float4 a_four = load4_or_zero(a, a_row < rows ? depth - a_col : 0);
        a_tile[a_col + 0][a_row] = a_four.x;
        a_tile[a_col + 1][a_row] = a_four.y;
        a_tile[a_col + 2][a_row] = a_four.z;
        a_tile[a_col + 3][a_row] = a_four.w;
        const float4 b_four = load4_or_zero(b, b_row < depth ? cols - b_col : 0);
        *reinterpret_cast<float4*>(&b_tile[b_row][b_col]) = b_four;
        a += BK;
        b += BK * ldb;
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_fragment[TM];  // TM values of a column of A
            float b_fragment[TN];  // TN values of a row of B
#pragma unroll
            for (int i = 0; i < TM; i += 4)
                load4(&a_tile[k][ty * 4 + i * ROWS], &a_fragment[i]);
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                load4(&b_tile[k][tx * 4 + j * COLS], &b_fragment[j]);
#pragma unroll
            for (int i = 0; i < TM; ++i) {  // snake: even rows to the right, odd rows back
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sums[i][j] += a_fragment[i] * b_fragment[j];
                }
            }
        }
        __syncthreads();  // the tiles are safe to overwrite
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

Kernel transposed() {
    return block_per_tile<BM, BN, THREADS, sgemm_transposed>();
}

Kernel fours() {
    return block_per_tile<BM, BN, THREADS, sgemm_fours>();
}

Kernel vectorized() {
    return block_per_tile_of_aligned_rows<BM, BN, THREADS, sgemm_vectorized>();
}

}  // namespace gemm
