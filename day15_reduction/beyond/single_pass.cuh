// Day 15, beyond: one launch. The last block to finish adds up the sums of all blocks.
//
// It needs what day 23 teaches, stated where it is used: a fence orders a thread's writes as other
// blocks see them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "reduction.cuh"

namespace day15 {

// True in the block that is the last to call it. All threads of each block call it, after thread 0
// has stored the block's result. atomicInc wraps to 0 at the last ticket, ready for the next
// launch.
__device__ inline bool is_last_block(unsigned* ticket) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();  // release: the result is visible before the ticket is drawn
        last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();  // acquire: the results of all earlier tickets are visible
    }
    __syncthreads();
    return last;
}

// Idea: each block stores its sum and draws a ticket. When a block draws the last ticket, all sums
// are stored, so it adds them up.
// Cost removed: the memset of *out. An atomic on the ticket replaces the one on the result, and at
// 2^20 elements that takes 7 % longer. Gained: the order of additions no longer depends on which
// block finishes first, but still on the grid.
// Still limits it: memory bandwidth.
__global__ void __launch_bounds__(kBlock, kBlocksPerSm)
    reduce_single_pass(const float* in, std::size_t n, float* out, float* sums, unsigned* ticket) {
    float sum = block_sum(sum_tiles(in, n));
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    if (!is_last_block(ticket)) return;

    sum = 0;
    for (unsigned first = threadIdx.x; first < gridDim.x; first += kLoads * kBlock) {
#pragma unroll
        for (unsigned k = 0; k < kLoads; ++k)  // unrolled: kLoads loads in flight
            sum += first + k * kBlock < gridDim.x ? sums[first + k * kBlock] : 0.0f;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) *out = sum;
}

inline void launch_single_pass(const float* in, std::size_t n, float* out, float* sums, unsigned* ticket,
                               unsigned blocks, cudaStream_t stream) {
    const unsigned grid = grid_size(blocks, n, kTile, course::resident_blocks(reduce_single_pass, kBlock));
    reduce_single_pass<<<grid, kBlock, 0, stream>>>(in, n, out, sums, ticket);
}

}  // namespace day15
