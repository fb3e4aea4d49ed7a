// Step 8: A's tile in shared memory without bank conflicts.
//
// Change:     the columns of A's tile are permuted by an XOR that depends on the row. Nothing else.
// Why:        each of the 32 banks delivers one word in a cycle; together that is a wavefront.
//             Lanes that need different words of the same bank take one wavefront each. A word that
//             several lanes need counts once.
//   access, of a warp        lanes                                       wavefronts: before  after
//   store A, word of float4  16 rows of A x 2 float4: 2 words in each bank              2      1
//   store B, float4          8 lanes at a time, 128 bytes: every bank once              4      4
//   load A, float4           2 different ones, each for 16 lanes: 8 banks               1      1
//   load B, float4           16 adjacent, 256 bytes: every bank twice                   2      2
// Prediction: for a tile, a warp takes 4 x 2 + 4 stored and 8 x (2 x 1 + 2 x 2) loaded = 60
//             wavefronts, now 56. Its 512 multiply-adds take a scheduler 512 cycles; 8 warps on
//             four schedulers take 1024 cycles. In the meantime 8 x 60 = 480 wavefronts are done.
//             So conflicts go to 0 and no time is gained. Rows 0 to 3 and rows 4 to 7 of A's tile
//             need an address each instead of one for both, which costs instructions.
// Counter:    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum to 0;
//             l1tex__data_pipe_lsu_wavefronts_mem_shared.sum -7 %.
// Measured:   conflicts go to 1 % of step 7's, but the wavefronts fall by 4 % only: ncu counts 104
//             for a warp's tile instead of 56, and 108 in step 7. That is what one gets if a 16-byte
//             load is served half a warp at a time, so that a load of A takes 2 wavefronts and one
//             of B 4. For 8 warps these are 832, still less than 1024 cycles.
//             As predicted, no time gained: about 47 TFLOP/s, 5 % less than step 7. Why it is
//             slower is not settled. In SASS, 286 of the main loop's 512 multiply-adds read two
//             operands from one register bank, in step 7 126. (An operand in the reuse cache, step
//             5, is not read.) That is probably part of the reason.
// Limit:      multiply-adds (counters: FMA 72 % busy, issue slots 83 %).
// Next:       the loads are 48 of the 56 wavefronts: which results should the threads of one warp
//             own (step 9)?
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
static_assert(BK % 2 == 0, "BK must be even: the ping-pong buffer has to be back at 0 when a tile ends");
static_assert(ROWS % 8 == 0, "the XOR must not leave the rows of the threads' first float4");

// Row `row` of A is in column swizzled(k, row) of row k of its tile. One store of a warp has 16
// rows of A and two float4 of each: the second float4 goes to the other 16 banks. The XOR moves
// groups of four, so that a float4 remains one.
__device__ int swizzled(int k, int row) {
    return row ^ (k / 4 * 16);
}

__global__ __launch_bounds__(THREADS, 2) void sgemm_swizzle(Sgemm gemm) {
    alignas(16) __shared__ float a_tile[2][BK][BM];  // two stages, transposed and swizzled
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
        a_tile[stage][a_col + 0][swizzled(a_col + 0, a_row)] = a_next.x;
        a_tile[stage][a_col + 1][swizzled(a_col + 1, a_row)] = a_next.y;
        a_tile[stage][a_col + 2][swizzled(a_col + 2, a_row)] = a_next.z;
        a_tile[stage][a_col + 3][swizzled(a_col + 3, a_row)] = a_next.w;
        *reinterpret_cast<float4*>(&b_tile[stage][b_row][b_col]) = b_next;
    };
    float a_fragment[2][TM];  // TM values of a column of A: those of k, and those of k + 1
    float b_fragment[2][TN];  // TN values of a row of B
    // B before A, as in step 7.
    const auto load_fragments = [&](int stage, int k, int buffer) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            load4(&b_tile[stage][k][tx * 4 + j * COLS], &b_fragment[buffer][j]);
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            load4(&a_tile[stage][k][swizzled(k, ty * 4) + i * ROWS], &a_fragment[buffer][i]);
    };

    // Prologue (day 38): the first tile, and the fragments of its first k.
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

Kernel swizzle() {
    return block_per_tile_of_aligned_rows<BM, BN, THREADS, sgemm_swizzle>();
}

}  // namespace gemm
