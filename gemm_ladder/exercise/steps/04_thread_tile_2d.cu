// To work through: fill in what says TODO, then ./course check gemm_ladder. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Step 4: TM x TN results for each thread.
//
// Change:     a thread has TM x TN = 8 x 8 results instead of 8 x 1; 256 threads have a tile of 128 x 128. Loading moves to load_tile().
// Why:        TM + TN words from shared memory serve TM * TN multiply-adds: 0.25 words for each, instead of 1.125.
// Prediction: 128 multiply-adds a clock need 32 words, just what shared memory hands out: arithmetic can become the limit. Global
//             loads: 1/64 for a multiply-add. In the listing, 80 shared loads for 512 multiply-adds, 700 instructions in all.
//             The price: 64 sums leave room for two blocks, 16 of 64 warps; TM = TN = 16 would need 256 registers for sums alone.
// Counter:    smsp__inst_executed_op_shared_ld.sum falls to 0.4 of step 3's; sm__inst_executed_pipe_fma.sum.pct_of_peak_sustained_active.
// Measured:   about 30 TFLOP/s, twice step 3, at 25 % occupancy. Arithmetic does not decide yet.
// Next:       of 700 instructions, 188 are no multiply-adds.
#include "../block_tile.cuh"
#include "../launch.hpp"
#include "../thread_tile.cuh"
#include "../tile.cuh"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int kBM = 128;
constexpr int kBN = 128;
constexpr int kBK = 8;
constexpr int kTM = 8;
constexpr int kTN = 8;
constexpr int kThreads = (kBM / kTM) * (kBN / kTN);

// Idea: a thread adds up TM x TN results: a value of A serves TN of them, a value of B serves TM.
// Cost removed: shared loads, TM + TN for TM * TN multiply-adds; and global loads, for the tile of a block is four times as large.
// Still limits it: instructions that only move data, one for each element.
template <int BM, int BN, int BK, int TM, int TN>
__global__ __launch_bounds__((BM / TM) * (BN / TN), 2) void sgemm_thread_tile_2d(Sgemm gemm) {
    // TODO gemm_ladder/thread_tile_2d, about 25 minutes.
    // A thread has TM x TN results. The block's threads stand as ROWS x COLS = BM / TM x BN / TN; thread (ty,
    // tx) has rows ty, ty + ROWS, ty + 2 ROWS... and columns tx, tx + COLS, tx + 2 COLS... of the tile, so
    // that neighbours in a warp have neighbouring columns.
    //
    // Given: `Window<BK> a_window(gemm.a, tile.row, 0)` and `Window<BN> b_window(gemm.b, 0, tile.col)`, which
    // know what a thread loads; `load_tile<THREADS>(window, tile)`, which loads all of a tile, with zeros
    // beyond the edge; `a_window.move_right(BK)`, `b_window.move_down(BK)`; `write_row<COLS>(gemm, row, col,
    // sums[i])`, which writes TN results of a row, COLS columns apart.
}

}  // namespace

Kernel thread_tile_2d() {
    return BlockPerTile<kBM, kBN, kThreads, sgemm_thread_tile_2d<kBM, kBN, kBK, kTM, kTN>>::kernel();
}

}  // namespace gemm
