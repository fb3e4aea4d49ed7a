// Step 12: asynchronous copies, several stages.
#include "../launch.hpp"
#include "beyond.hpp"
#include "pipelined_tile.cuh"

namespace gemm {
namespace {

using Tile = TileShape<128, 128, 16, 32, 64, 8, 8, 3>;
constexpr int kBlocks = 2;  // that a multiprocessor runs at the same time

// Idea: B's tiles are copied into shared memory by the copy hardware, several tiles ahead.
// Cost removed: registers that only hold what is on its way, the stores of B, and most of the waiting for global memory.
// Still limits it: the last round of blocks does not fill the GPU.
template <class T, int VEC>
__global__ __launch_bounds__(T::THREADS, kBlocks) void sgemm_multi_stage(Sgemm gemm) {
    extern __shared__ float4 shared[];
    const Origin origin = origin_of_tile<T::BM, T::BN>(gemm, blockIdx.x);
    float sums[T::TM][T::TN] = {};
    multiply_pipelined<T, VEC>(gemm, origin, 0, gemm.k(), reinterpret_cast<Stage<T>*>(shared), sums);
    write_tile<T, VEC>(gemm, origin, sums, reinterpret_cast<float*>(shared));
}

}  // namespace

Kernel multi_stage() {
    return BlockPerTile<Tile::BM, Tile::BN, Tile::THREADS, sgemm_multi_stage<Tile, 4>,
                        sgemm_multi_stage<Tile, 1>, sizeof(Stage<Tile>) * Tile::STAGES>::kernel();
}

}  // namespace gemm
