// Steps 6 to 11 where rows are not aligned: warp tiles without float4 in global memory.
//
// Change:     a thread loads A and B, and stores C, one float at a time. A warp loads 8 columns of
//             4 rows of A. Rows of A's tile are four floats longer: for 8 values of k and 4 rows,
//             (BM + 4) k + row are 32 different banks. A block has 64 x 128 of C, a thread 8 x 8,
//             and four blocks share an SM.
// Why:        a float4 must start at a multiple of 16 bytes. If the leading dimension is not a
//             multiple of 4, most rows do not. In shared memory the tiles are aligned nevertheless,
//             and fragments are read as float4. Smaller blocks: when the last ones do not fill the
//             GPU, each has half as much left to do. They replace split-K, too.
// Prediction: 2047 x 2049 x 2051 has 289 tiles of 128 x 128 for 132 x 2 blocks at a time: 25 were
//             left for a second wave of their own. Of 64 x 128 there are 544 for 528: 16 are left,
//             half as large. So it should be faster than the 128 x 128 tiles of this kernel's first
//             form (803 us) and those of split-K (619 us).
// Measured:   2047 x 2049 x 2051 takes 585 us on an H200. The fastest of the former kernels for
//             such rows, of step 11, took 623.
#include "../edges.cuh"
#include "../launch.hpp"

namespace gemm {
namespace {

constexpr int BM = 64;  // a block's tile of C: BM x BN
constexpr int BN = 128;
constexpr int BK = 8;  // columns of A's tile, rows of B's
constexpr int TM = 8;  // a thread's results: TM x TN
constexpr int TN = 8;
constexpr int WM = 32;  // a warp's tile of C: WM x WN
constexpr int WN = 64;
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int LANES_M = WM / TM;  // a warp's lanes: LANES_M x LANES_N
constexpr int LANES_N = WN / TN;
static_assert(LANES_M * LANES_N == 32, "WM / TM x WN / TN must be the 32 lanes of a warp");
static_assert(BK % 2 == 0, "the fragments must be back at 0 when a tile ends");

constexpr int A_RIGHT = 8;  // columns of A's tile that the block loads at once
constexpr int A_DOWN = THREADS / A_RIGHT;
constexpr int PAD = 4;
static_assert(BM % 32 == 0, "rows of A's tile, with PAD, must begin four banks apart");
static_assert(BN == THREADS, "each thread loads a column of B's tile");

__global__ __launch_bounds__(THREADS, 4) void sgemm_unaligned(Sgemm gemm) {
    alignas(16) __shared__ float a_tile[2][BK][BM + PAD];  // two stages, transposed
    alignas(16) __shared__ float b_tile[2][BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    const int thread = threadIdx.x;
    // Thread to C: a warp has WM x WN of the tile, and a lane fours of rows, LANES_M fours apart,
    // and fours of columns, LANES_N fours apart. The first of them starts at (row, col) of the
    // tile.
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int row = warp / (BN / WN) * WM + lane / LANES_N * 4;
    const int col = warp % (BN / WN) * WN + lane % LANES_N * 4;
    // Thread to loads: element (a_row, a_col) of A's tile, and those A_DOWN rows further down and
    // A_RIGHT columns to the right; column b_col of B's tile.
    const int a_row = thread / A_RIGHT;
    const int a_col = thread % A_RIGHT;
    const int b_col = thread;
    const std::size_t lda = gemm.a.leading_dimension();
    const std::size_t ldb = gemm.b.leading_dimension();
    const float* a = gemm.a.data() + (row0 + a_row) * lda + a_col;
    const float* b = gemm.b.data() + col0 + b_col;
    const int rows = remaining(gemm.m(), row0);  // of the tile
    const int cols = remaining(gemm.n(), col0);

    float a_next[BM / A_DOWN][BK / A_RIGHT];  // what this thread has loaded of the next tile of A
    float b_next[BK];                         // and of B
    const auto load_next = [&](std::size_t k0) {
        const int depth = remaining(gemm.k(), k0);
#pragma unroll
        for (int m = 0; m < BM / A_DOWN; ++m) {
#pragma unroll
            for (int n = 0; n < BK / A_RIGHT; ++n)
                a_next[m][n] = a_row + m * A_DOWN < rows && a_col + n * A_RIGHT < depth
                                   ? a[m * A_DOWN * lda + n * A_RIGHT]
                                   : 0;
        }
#pragma unroll
        for (int k = 0; k < BK; ++k)
            b_next[k] = k < depth && b_col < cols ? b[k * ldb] : 0;
    };
    const auto store_next = [&](int stage) {
#pragma unroll
        for (int m = 0; m < BM / A_DOWN; ++m) {
#pragma unroll
            for (int n = 0; n < BK / A_RIGHT; ++n)
                a_tile[stage][a_col + n * A_RIGHT][a_row + m * A_DOWN] = a_next[m][n];
        }
#pragma unroll
        for (int k = 0; k < BK; ++k)
            b_tile[stage][k][b_col] = b_next[k];
    };
    float a_fragment[2][TM];  // TM values of a column of A: those of k, and those of k + 1
    float b_fragment[2][TN];  // TN values of a row of B
    const auto load_fragments = [&](int stage, int k, int buffer) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            load4(&b_tile[stage][k][col + j * LANES_N], &b_fragment[buffer][j]);
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            load4(&a_tile[stage][k][row + i * LANES_M], &a_fragment[buffer][i]);
    };

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
            for (int i = 0; i < TM; ++i) {  // a snake: even rows to the right, odd rows back
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
        for (int j = 0; j < TN; ++j)
            store(gemm, row0 + row + i / 4 * LANES_M * 4 + i % 4, col0 + col + j / 4 * LANES_N * 4 + j % 4,
                  sums[i][j]);
    }
}

}  // namespace

void launch_unaligned(const Sgemm& gemm, cudaStream_t stream) {
    course::launch(sgemm_unaligned, {.grid = tiles_of<BM, BN>(gemm), .block = THREADS, .stream = stream},
                   gemm);
}

}  // namespace gemm
