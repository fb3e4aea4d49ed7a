// Day 19, beyond: the parallel bubble sort, in one block.
//
//   version                what is new                                   what limits it
//   odd_even               adjacent keys are swapped                     n phases; one block
#pragma once

#include "merge_sort.cuh"

namespace day19 {

constexpr int kOddEvenBlock = 512;                    // threads
constexpr unsigned kOddEvenKeys = 2 * kOddEvenBlock;  // at most

// Idea: odd-even transposition sort. In even phases keys 0 and 1, 2 and 3, ... are swapped if they
// are out of order, in odd phases keys 1 and 2, 3 and 4, ... A key moves at most one place per
// phase, and n phases are enough for every order.
// Cost removed: the inner loop of a bubble sort. A phase does n / 2 comparisons at once.
// Still limits it: latency. One block does n phases one after the other, with a barrier after each:
// n^2 / 2 comparisons.
__global__ void __launch_bounds__(kOddEvenBlock) odd_even(const Key* in, unsigned n, Key* out) {
    __shared__ Key tile[kOddEvenKeys];
    for (unsigned i = threadIdx.x; i < n; i += kOddEvenBlock)
        tile[i] = in[i];
    __syncthreads();
    for (unsigned phase = 0; phase < n; ++phase) {
        const unsigned i = 2 * threadIdx.x + phase % 2;
        if (i + 1 < n) order(tile, i, i + 1);
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < n; i += kOddEvenBlock)
        out[i] = tile[i];
}

inline void launch_odd_even(const Key* in, unsigned n, Key* out, cudaStream_t stream) {
    odd_even<<<1, kOddEvenBlock, 0, stream>>>(in, n, out);
}

}  // namespace day19
