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
    const Origin tile = origin_of_tile<BLOCK, BLOCK>(gemm, blockIdx.x);
    const std::size_t row = tile.row + threadIdx.x / BLOCK;
    const std::size_t col = tile.col + threadIdx.x % BLOCK;
    if (row >= gemm.m() || col >= gemm.n()) return;

    float sum = 0;
    for (std::size_t k = 0; k < gemm.k(); ++k)
        sum += gemm.a(row, k) * gemm.b(k, col);
    write_element(gemm, row, col, sum);
}

}  // namespace

Kernel naive() {
    return BlockPerTile<kBlock, kBlock, kBlock * kBlock, sgemm_naive<kBlock>>::kernel();
}

}  // namespace gemm
