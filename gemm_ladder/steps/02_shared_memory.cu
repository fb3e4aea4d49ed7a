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
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    const Origin tile = origin_of_tile<TILE, TILE>(gemm, blockIdx.x);
    const int ty = threadIdx.x / TILE;
    const int tx = threadIdx.x % TILE;

    float sum = 0;
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += TILE) {
        a_tile[ty][tx] = load_or_zero(gemm.a, tile.row + ty, k0 + tx);
        b_tile[ty][tx] = load_or_zero(gemm.b, k0 + ty, tile.col + tx);
        __syncthreads();  // the tiles are complete
        for (int k = 0; k < TILE; ++k)
            sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();  // nobody needs them any more
    }
    write_element(gemm, tile.row + ty, tile.col + tx, sum);
}

}  // namespace

Kernel shared_memory() {
    return BlockPerTile<kTile, kTile, kTile * kTile, sgemm_shared_memory<kTile>>::kernel();
}

}  // namespace gemm
