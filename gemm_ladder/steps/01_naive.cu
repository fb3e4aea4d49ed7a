// Step 1: a thread for each element of C.
//
// Change:     none yet. The definition: each thread computes the dot product of a row of A and a
//             column of B.
// Why:        adjacent threads own adjacent columns, so that a warp reads B and writes C along rows
//             (day 5).
// Prediction: a warp issues two loads for its 32 multiply-adds, and the load unit accepts at most
//             one load per cycle: 16 multiply-adds per cycle, of the 128 that an SM could do. That
//             is 12.5 % of the limit, about 8 TFLOP/s on an H200.
// Counter:    smsp__inst_executed_op_global_ld.sum: two for each multiply-add of a warp.
// Measured:   not as predicted: about 5 TFLOP/s, a tenth of cuBLAS. We counted load instructions
//             only, as if every load hit the L1 cache. 1024^3, where the L2 cache holds all
//             matrices, reaches 6, so misses are probably part of the difference.
// Limit:      latency (4096^3, counters: no unit above 58 %; warps wait for loads 62 % of their
//             time).
// Next:       two loads for every multiply-add, all of them through the caches.
#include "../edges.cuh"
#include "../launch.hpp"
#include "steps.hpp"

namespace gemm {
namespace {

constexpr int BM = 32;  // a block's tile of C: BM x BN
constexpr int BN = 32;
constexpr int THREADS = BM * BN;

__global__ __launch_bounds__(THREADS) void sgemm_naive(Sgemm gemm) {
    // The block's tile of C starts at (row0, col0). Tile 1 is to the right of tile 0. The grid has
    // one dimension, because gridDim.y ends at 65535.
    const unsigned tiles_across = (gemm.n() + BN - 1) / BN;
    const std::size_t row0 = std::size_t{blockIdx.x / tiles_across} * BM;
    const std::size_t col0 = std::size_t{blockIdx.x % tiles_across} * BN;
    // Thread to C: row ty and column tx of the tile. A warp has 32 adjacent columns.
    const int ty = threadIdx.x / BN;
    const int tx = threadIdx.x % BN;
    if (row0 + ty >= gemm.m() || col0 + tx >= gemm.n()) return;

    float sum = 0;
    for (std::size_t k = 0; k < gemm.k(); ++k)
        sum += gemm.a(row0 + ty, k) * gemm.b(k, col0 + tx);
    store(gemm, row0 + ty, col0 + tx, sum);
}

}  // namespace

Kernel naive() {
    return block_per_tile<BM, BN, THREADS, sgemm_naive>();
}

}  // namespace gemm
