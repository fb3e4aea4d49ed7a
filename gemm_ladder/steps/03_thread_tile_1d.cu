// Step 3: TM results for each thread, one below the other.
//
// Change:     a thread has a column of TM = 8 results instead of one, and a block of 512 threads
//             computes a 64 x 64 tile. This changes two more things. BK is 8 instead of 32, so that
//             each thread still loads one element of A and one of B. And the sums need registers,
//             52 instead of 32, so occupancy is 50 % instead of 100 %.
// Why:        a value of B that is in a register serves TM multiply-adds. Our model: shared memory
//             returns 32 words per cycle to the lanes of an SM that could do 128 multiply-adds with
//             them. Step 2 needs two words per multiply-add, this one 1 + 1/TM = 1.125. The larger
//             tile halves the global loads: 1/BM + 1/BN = 1/32 per multiply-add instead of 1/16.
// Prediction: 2 / 1.125 = 1.8 times step 2, as long as these words are the limit. SASS has 24
//             shared loads for 64 multiply-adds, step 2 has 40 for 32.
// Counter:    smsp__inst_executed_op_shared_ld.sum falls to 0.3 of step 2's.
// Measured:   about 15 TFLOP/s, 1.9 times step 2: the right figure from a wrong model, as 04a
//             shows. In cycles of shared memory, counted as in step 2's head, 64 multiply-adds need
//             8 + 16 x 2 = 40: that allows 40 % of the peak, and this is 24 %. Shared memory is
//             still the busiest unit, but only 60 % busy (ncu): warps also wait for the loads of
//             the tiles. Load instructions are not the limit, or it would be 3.3 times step 2.
// Limit:      shared memory (counters: 60 % busy; L1, in the same unit, 67 %).
// Next:       A still comes from shared memory once per multiply-add: a thread needs more than one
//             column.
#include "../edges.cuh"
#include "../launch.hpp"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int BM = 64;  // a block's tile of C: BM x BN
constexpr int BN = 64;
constexpr int BK = 8;  // columns of A's tile, rows of B's
constexpr int TM = 8;  // a thread's results: TM x 1
constexpr int THREADS = BM / TM * BN;
static_assert(BM % TM == 0, "TM must divide BM");
static_assert(BM * BK == THREADS && BK * BN == THREADS, "each thread loads one element of A and one of B");

__global__ __launch_bounds__(THREADS) void sgemm_thread_tile_1d(Sgemm gemm) {
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    // Thread to C: rows ty * TM to ty * TM + TM - 1 of column tx of the tile. A warp has 32
    // adjacent columns.
    const int thread = threadIdx.x;
    const int ty = thread / BN;
    const int tx = thread % BN;
    // Thread to loads: element (a_row, a_col) of A's tile and (b_row, b_col) of B's.
    const int a_row = thread / BK;
    const int a_col = thread % BK;
    const int b_row = thread / BN;
    const int b_col = thread % BN;

    // TM x 1 results of this thread. They stay in registers only if each index is a constant, so
    // all loops over them are unrolled.
    float sums[TM] = {};
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        a_tile[a_row][a_col] = load_or_zero(gemm.a, row0 + a_row, k0 + a_col);
        b_tile[b_row][b_col] = load_or_zero(gemm.b, k0 + b_row, col0 + b_col);
        __syncthreads();  // the tiles are complete
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float b_value = b_tile[k][tx];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                sums[i] += a_tile[ty * TM + i][k] * b_value;
        }
        __syncthreads();  // the tiles are safe to overwrite
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
        store(gemm, row0 + ty * TM + i, col0 + tx, sums[i]);
}

}  // namespace

Kernel thread_tile_1d() {
    return block_per_tile<BM, BN, THREADS, sgemm_thread_tile_1d>();
}

}  // namespace gemm
