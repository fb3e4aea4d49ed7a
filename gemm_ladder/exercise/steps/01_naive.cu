// To work through: fill in what says TODO, then ./course check gemm_ladder. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Step 1: a thread for each element of C.
//
// Change:     from cuBLAS to the definition: each thread adds up one row of A times one column of B.
// Why:        neighbouring threads have neighbouring columns, so that a warp reads B and writes C along rows (day 5).
// Prediction: two loads of a warp for its 32 multiply-adds, and the load unit takes one in a cycle at best: 16 multiply-adds a cycle of 128
//             that a multiprocessor could do.
// Counter:    smsp__inst_executed_op_global_ld.sum: two for each multiply-add of a warp.
// Measured:   about 5 TFLOP/s, a tenth of cuBLAS.
// Next:       two loads for every multiply-add, all of them through the caches.
#include "../launch.hpp"
#include "../tile.cuh"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int kBlock = 32;

// Idea: each thread adds up one row of A times one column of B.
// Cost removed: the two outer loops of the CPU.
// Still limits it: 2 K loads for each element of C; all of them go through the one load unit of the multiprocessor.
template <int BLOCK>
__global__ __launch_bounds__(BLOCK* BLOCK) void sgemm_naive(Sgemm gemm) {
    // TODO gemm_ladder/naive, about 10 minutes.
    // Each thread computes one element of C: C(row, col) = alpha * (row `row` of A times column `col` of B) +
    // beta * C(row, col). A is m x k, B is k x n, C is m x n; `gemm.m()`, `gemm.n()`, `gemm.k()` are the
    // extents, `gemm.a(row, k)` and `gemm.b(k, col)` the elements.
    //
    // A block of BLOCK * BLOCK threads, in one dimension, has a BLOCK x BLOCK tile of C. Given:
    // `origin_of_tile<BLOCK, BLOCK>(gemm, blockIdx.x)`, whose `row` and `col` say where in C the tile begins,
    // and `write_element(gemm, row, col, sum)`, which applies alpha and beta. Neighbouring threads shall have
    // neighbouring columns. The tile may reach beyond the edge of C.
}

}  // namespace

Kernel naive() {
    return BlockPerTile<kBlock, kBlock, kBlock * kBlock, sgemm_naive<kBlock>>::kernel();
}

}  // namespace gemm
