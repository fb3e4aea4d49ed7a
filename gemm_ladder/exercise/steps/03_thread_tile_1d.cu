// To work through: fill in what says TODO, then ./course check gemm_ladder. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Step 3: TM results for each thread, one below the other.
//
// Change:     a thread has a column of TM = 8 results instead of one; 512 threads have a tile of 64 x 64, BK = 8 deep.
// Why:        a value of B, once in a register, serves TM multiply-adds. Shared memory hands 32 words a clock to a multiprocessor that
//             could do 128 multiply-adds with them; step 2 wants two words for each, this one 1 + 1/TM = 1.125.
// Prediction: 2 / 1.125 = 1.8 times step 2, as long as these words decide. Global loads: 1/BM + 1/BN = 1/32 for a multiply-add instead
//             of 1/16. In the listing (cuobjdump -sass), the loop has 24 shared loads for 64 multiply-adds; step 2 has 40 for 32.
// Counter:    smsp__inst_executed_op_shared_ld.sum falls to 0.3 of step 2's.
// Measured:   about 15 TFLOP/s, 1.9 times step 2: the words decided.
// Next:       A still comes from shared memory once for each multiply-add: a thread needs more than one column.
#include "../launch.hpp"
#include "../tile.cuh"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int kBM = 64;
constexpr int kBN = 64;
constexpr int kBK = 8;
constexpr int kTM = 8;
constexpr int kThreads = kBM / kTM * kBN;

// Idea: a thread adds up TM results of one column: a value of B, once read, serves all of them.
// Cost removed: TM - 1 of TM shared loads of B; and a block of as many threads now has a larger tile, so fewer global loads.
// Still limits it: A is still read once for each multiply-add.
template <int BM, int BN, int BK, int TM>
__global__ __launch_bounds__(BM / TM * BN) void sgemm_thread_tile_1d(Sgemm gemm) {
    // TODO gemm_ladder/thread_tile_1d, about 20 minutes.
    // A thread has TM results now, one below the other: rows ty * TM to ty * TM + TM - 1 of column tx of the
    // block's BM x BN tile. The block has BM / TM * BN threads; the tiles in shared memory are
    // `a_tile[BM][BK]` and `b_tile[BK][BN]`.
    //
    // The sizes are such that each thread loads exactly one element of A's tile (BM * BK threads) and one of
    // B's (BK * BN). Which one it loads has nothing to do with which results it has. Given:
    // `origin_of_tile<BM, BN>`, `load_or_zero`, `write_element`. Read a value of B once from shared memory
    // and use it TM times.
}

}  // namespace

Kernel thread_tile_1d() {
    return BlockPerTile<kBM, kBN, kThreads, sgemm_thread_tile_1d<kBM, kBN, kBK, kTM>>::kernel();
}

}  // namespace gemm
