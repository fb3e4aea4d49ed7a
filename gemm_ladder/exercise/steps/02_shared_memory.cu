// To work through: fill in what says TODO, then ./course check gemm_ladder. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Step 2: tiles of A and B in shared memory.
//
// Change:     a block of 1024 threads loads a 32 x 32 tile of A and of B into shared memory, and multiplies them there.
// Why:        a value loaded from global memory serves 32 threads: 1/16 loads for a multiply-add instead of 2.
// Prediction: both factors now come from shared memory, which is still two words for each multiply-add, but the compiler reads A four at
//             a time: 40 loads for 32 multiply-adds instead of 64. 1.6 times step 1, if loads decide.
// Counter:    smsp__inst_executed_op_global_ld.sum falls to 1/32 of step 1's; smsp__inst_executed_op_shared_ld.sum takes its place.
// Measured:   about 8 TFLOP/s, 1.7 times step 1, at 100 % occupancy.
// Next:       40 shared loads for 32 multiply-adds.
#include "../launch.hpp"
#include "../tile.cuh"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int kTile = 32;

// Idea: the block loads a TILE x TILE piece of A and of B into shared memory; all its threads use each value TILE times.
// Cost removed: TILE - 1 of TILE global loads.
// Still limits it: both factors of every multiply-add still come from memory, now shared: two loads for each.
template <int TILE>
__global__ __launch_bounds__(TILE* TILE) void sgemm_shared_memory(Sgemm gemm) {
    // TODO gemm_ladder/shared_memory, about 15 minutes.
    // As step 1, but A and B come through shared memory, a tile of TILE x TILE of each at a time. For each
    // TILE along K: every thread loads one element of A's tile and one of B's, all wait, every thread adds
    // TILE products, all wait.
    //
    // Given: `load_or_zero(gemm.a, row, k)` and `load_or_zero(gemm.b, k, col)`, which give 0 beyond the edge
    // of the matrix; `origin_of_tile`; `write_element`, which writes nothing beyond the edge. Keep
    // `a_tile[row in tile][k in tile]` and `b_tile[k in tile][column in tile]`.
}

}  // namespace

Kernel shared_memory() {
    return BlockPerTile<kTile, kTile, kTile * kTile, sgemm_shared_memory<kTile>>::kernel();
}

}  // namespace gemm
