// To work through: fill in what says TODO, then ./course check gemm_ladder. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Step 5: operands copied to registers first.
//
// Change:     a column of A's tile and a row of B's are copied to register arrays, the fragments, and then multiplied, row by row in a
//             snake (multiply_fragments() in thread_tile.cuh).
// Why:        step 4 names a shared address in each of its multiply-adds. The compiler saw that 64 of them have 16 different operands
//             and kept those in registers: the listing of step 4 has the same 80 shared loads for 512 multiply-adds as this one.
//             What the fragments change is who decides: from here on the order of loads and multiply-adds is ours to write.
//             What the snake changes: at each turn one operand comes from the reuse cache. From registers alone, on an H200, that is
//             a few percent faster than all rows from left to right.
// Prediction: the same number of instructions; a few percent from the snake.
// Counter:    smsp__inst_executed_op_shared_ld.sum stays; smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active falls.
// Measured:   about 30 TFLOP/s, as step 4: registers do not decide yet, so the snake wins nothing here.
// Next:       80 shared loads, 8 global loads and 8 shared stores, each for one element or, where the compiler saw it, four.
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

// Idea: a column of A's tile and a row of B's go to registers first; then only registers are multiplied.
// Cost removed: none that the compiler had left; but the order of loads and arithmetic is now written, not guessed.
// Still limits it: instructions that only move data, one for each element.
template <int BM, int BN, int BK, int TM, int TN>
__global__ __launch_bounds__((BM / TM) * (BN / TN), 2) void sgemm_register_fragments(Sgemm gemm) {
    // TODO gemm_ladder/register_fragments, about 15 minutes.
    // Step 4 with its operands in registers: for each k, copy the TM values of A and the TN values of B that
    // this thread needs into two arrays, the fragments, then multiply the arrays.
    //
    // Given, besides what step 4 has: `multiply_fragments(a_fragment, b_fragment, sums)`, which adds
    // a_fragment[i] * b_fragment[j] to sums[i][j] for all i and j.
}

}  // namespace

Kernel register_fragments() {
    return BlockPerTile<kBM, kBN, kThreads, sgemm_register_fragments<kBM, kBN, kBK, kTM, kTN>>::kernel();
}

}  // namespace gemm
