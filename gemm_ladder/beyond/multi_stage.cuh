// The kernel of step 12, for any tile.
#pragma once

#include "launch.hpp"
#include "pipelined_tile.cuh"

namespace gemm {

// Idea: tiles are copied into shared memory past the registers, STAGES - 1 of them ahead of the one that is multiplied.
// Cost removed: registers that only hold what is on its way; they can go to a larger tile of C.
// Still limits it: the last round of blocks does not fill the GPU.
template <class T, int VEC, int BLOCKS>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void sgemm_multi_stage(Sgemm gemm) {
    extern __shared__ float4 shared[];
    const Origin origin = origin_of_tile<T::BM, T::BN>(gemm, blockIdx.x);
    float sums[T::TM][T::TN] = {};
    multiply_pipelined<T, VEC>(gemm, origin, 0, gemm.k(), reinterpret_cast<Stage<T>*>(shared), sums);
    write_tile<T, VEC>(gemm, origin, sums, reinterpret_cast<float*>(shared));
}

// BLOCKS: how many of them a multiprocessor must be able to run at the same time.
template <class T, int BLOCKS>
using MultiStage =
    BlockPerTile<T::BM, T::BN, T::THREADS, sgemm_multi_stage<T, 4, BLOCKS>, sgemm_multi_stage<T, 1, BLOCKS>,
                 sizeof(Stage<T>) * T::STAGES, rows_are_whole_packs>;

}  // namespace gemm
