// Step 12: asynchronous copies, several stages.
//
// Change:     cp.async brings tiles from global to shared memory past the registers, four stages of them (multi_stage.cuh). A block has
//             128 x 256 results, one of 256 threads on a multiprocessor instead of two of 128. Sums are stored in swapped order.
// Why:        registers no longer hold what is on its way, and three tiles are on their way instead of one. A tile twice as wide wants
//             3/256 words from global memory for a multiply-add instead of 4/256. The swapped order puts sums and factors into
//             different banks of the register file (step 11, store_partial()).
// Prediction: the main loop stores no tile; only the copies' addresses are left beside shared loads and multiply-adds. Global loads
//             -25 %. Above step 10 by what register bank conflicts have cost.
// Counter:    smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active falls; so does smsp__inst_executed_op_shared_st.sum.
// Measured:   about 53 TFLOP/s, 1.14 times step 10: 3 % more than cuBLAS.
// Next:       512 tiles on 132 multiprocessors are 3.88 rounds, and take 4.
#include "beyond.hpp"
#include "multi_stage.cuh"

namespace gemm {

Kernel multi_stage() {
    return MultiStage<TileShape<128, 256, 8, 64, 64, 16, 8, 4, 3>, 1>::kernel();
}

}  // namespace gemm
