// Step 10: warp tiling without bank conflicts.
//
// Change:     A's tile is stored and read through the XOR of step 8, extended to BK = 16.
// Why:        the stores of A are a warp's only accesses with bank conflicts:
//   access, of a warp        lanes                                       wavefronts: before  after
//   store A, word of float4  8 rows of A x 4 float4: 4 words in each of 8 banks          4      1
//   store B, float4          8 lanes at a time, 128 bytes: every bank once               4      4
//   load A, float4           4 adjacent, 64 bytes, each for 8 lanes: 16 banks            1      1
//   load B, float4           8 adjacent, 128 bytes: every bank once                      1      1
// Prediction: for a tile, a warp takes 16 x 4 + 4 x 4 stored and 16 x (4 + 2) loaded = 176
//             wavefronts, now 128: -27 %. Its 2048 multiply-adds take a scheduler 2048 cycles, and
//             4 warps on 4 schedulers as many; 4 x 176 = 704 wavefronts are done in the meantime.
//             So little time is gained: at most 192 cycles (4 warps x 48 wavefronts saved) just
//             before a barrier, while the other block computes.
// Counter:    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum to 0,
//             l1tex__data_pipe_lsu_wavefronts_mem_shared.sum -27 %.
// Measured:   about 48.5 TFLOP/s, 3 % more than step 9: little, as predicted. 1024^3: 184 us; step
//             9: 178 us.
// Limit:      multiply-adds (counters: FMA 76 % busy, issue slots 80 %).
// Next:       a small C has fewer tiles than the GPU has SMs.
#include "../edges.cuh"
#include "../launch.hpp"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int BM = 128;  // a block's tile of C: BM x BN
constexpr int BN = 128;
constexpr int BK = 16;  // columns of A's tile, rows of B's
constexpr int TM = 16;  // a thread's results: TM x TN
constexpr int TN = 8;
static_assert(BM % TM == 0 && BN % TN == 0, "TM must divide BM, TN must divide BN");
static_assert(TM % 4 == 0 && TN % 4 == 0, "a fragment is a whole number of float4");
constexpr int WM = 64;  // a warp's tile of C: WM x WN
constexpr int WN = 64;
constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int LANES_M = WM / TM;  // a warp's lanes: LANES_M x LANES_N
constexpr int LANES_N = WN / TN;
constexpr int ROUND = LANES_M * 4;  // rows of the first float4 of all lanes
static_assert(LANES_M * LANES_N == 32, "WM / TM x WN / TN must be the 32 lanes of a warp");
static_assert(BK % 2 == 0, "BK must be even: the ping-pong buffer has to be back at 0 when a tile ends");
static_assert(BM % 32 == 0 && WM % 32 == 0, "the XOR must stay in a warp's tile");

// Row `row` of A is in column swizzled(k, row) of row k of its tile. One store of a warp has 8 rows
// of A and four float4 of each: each of the four goes to 8 banks of its own. The XOR moves groups
// of four, so that a float4 remains one.
__device__ int swizzled(int k, int row) {
    return row ^ (k / 4 * 8);
}

__global__ __launch_bounds__(THREADS, 2) void sgemm_warp_tiling_swizzle(Sgemm gemm) {
    alignas(16) __shared__ float a_tile[2][BK][BM];  // two stages, transposed and swizzled
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
        if (cols_fit && k0 + BK <= gemm.k()) {
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
            a_tile[stage][a_col + 0][swizzled(a_col + 0, a_row + n * A_DOWN)] = a_next[n].x;
            a_tile[stage][a_col + 1][swizzled(a_col + 1, a_row + n * A_DOWN)] = a_next[n].y;
            a_tile[stage][a_col + 2][swizzled(a_col + 2, a_row + n * A_DOWN)] = a_next[n].z;
            a_tile[stage][a_col + 3][swizzled(a_col + 3, a_row + n * A_DOWN)] = a_next[n].w;
        }
#pragma unroll
        for (int n = 0; n < BK / B_DOWN; ++n)
            *reinterpret_cast<float4*>(&b_tile[stage][b_row + n * B_DOWN][b_col]) = b_next[n];
    };
    float a_fragment[2][TM];  // TM values of a column of A: those of k, and those of k + 1
    float b_fragment[2][TN];  // TN values of a row of B
    const auto load_fragments = [&](int stage, int k, int buffer) {
        // swizzled(k, row + i * LANES_M) in two parts. four_bits permutes the lane's own float4: an
        // immediate offset, free. lane_bits changes the address: one XOR.
        const int mask = k / 4 * 8;
        const int lane_bits = mask % ROUND;
        const int four_bits = mask - lane_bits;
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            load4(&a_tile[stage][k][(row ^ lane_bits) + (i * LANES_M ^ four_bits)], &a_fragment[buffer][i]);
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

Kernel warp_tiling_swizzle() {
    return block_per_tile_of_aligned_rows<BM, BN, THREADS, sgemm_warp_tiling_swizzle>();
}

}  // namespace gemm
