// Step 2: tiles of A and B in shared memory.
//
// Change:     a block of 1024 threads loads a 32 x 32 tile of A and of B into shared memory, and
//             computes from there.
// Why:        a value loaded from global memory serves 32 threads: 1/16 loads per multiply-add
//             instead of 2.
// Prediction: both operands now come from shared memory, which is still two words per multiply-add.
//             But the compiler reads A as float4: SASS, the listing of machine instructions
//             (cuobjdump -sass), has 40 loads for 32 multiply-adds instead of 64. So 1.6 times step
//             1, if load instructions are the limit.
// Counter:    smsp__inst_executed_op_global_ld.sum falls to 1/32 of step 1's;
//             smsp__inst_executed_op_shared_ld.sum takes its place.
// Measured:   as predicted: about 8 TFLOP/s, 1.7 times step 1, at 100 % occupancy. What limits it?
//             A load of B occupies shared memory for one cycle, but a 16-byte load of one address
//             for two. 32 multiply-adds of a warp need 32 + 8 x 2 = 48 cycles (ncu counts 50, with
//             the stores of the tiles), in which an SM could do 192: a sixth of the peak, 17.7 % of
//             the measured limit. Day 5's tile_limit, this inner loop without global loads, reaches
//             17.5 %. Step 2 also waits for its tiles: 13 %, with shared memory 76 % busy.
// Limit:      shared memory (counters: 76 % busy).
// Next:       40 shared loads for 32 multiply-adds of a thread.
#include "../edges.cuh"
#include "../launch.hpp"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int BM = 32;  // a block's tile of C: BM x BN
constexpr int BN = 32;
constexpr int BK = 32;  // columns of A's tile, rows of B's
constexpr int THREADS = BM * BN;

__global__ __launch_bounds__(THREADS) void sgemm_shared_memory(Sgemm gemm) {
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    // Thread to C: row ty and column tx of the tile. A warp has 32 adjacent columns. The thread
    // loads the element at the same place of A's tile and of B's.
    const int ty = threadIdx.x / BN;
    const int tx = threadIdx.x % BN;

    float sum = 0;
    for (std::size_t k0 = 0; k0 < gemm.k(); k0 += BK) {
        a_tile[ty][tx] = load_or_zero(gemm.a, row0 + ty, k0 + tx);
        b_tile[ty][tx] = load_or_zero(gemm.b, k0 + ty, col0 + tx);
        __syncthreads();  // the tiles are complete
        // BK is a constant, so the compiler unrolls the loop: it writes out all 32 iterations.
        // Because it places a_tile itself, it may align the tile for float4 and read four values of
        // k at once.
        for (int k = 0; k < BK; ++k)
            sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();  // the tiles are safe to overwrite
    }
    store(gemm, row0 + ty, col0 + tx, sum);
}

}  // namespace

Kernel shared_memory() {
    return block_per_tile<BM, BN, THREADS, sgemm_shared_memory>();
}

}  // namespace gemm
