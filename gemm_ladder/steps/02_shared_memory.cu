// Step 2: tiles of A and B in shared memory.
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
