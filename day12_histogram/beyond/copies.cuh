// Day 12, beyond: more than one copy of a block's counters.
//
//   version            where a value is counted                    what limits it
//   per_warp_copies    in a copy per warp                          bank conflicts
//   lane_copies        in a copy per lane, each in its own bank    memory bandwidth
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "histogram.cuh"

namespace day12 {

constexpr int kWarpSize = 32;
constexpr int kWarps = kBlock / kWarpSize;  // of a block

// Idea: a copy of the counters per warp.
// Cost removed: contention between warps, and the comparisons.
// Still limits it: bank conflicts. Lanes whose values differ but lie in the same bank are served
// one after the other: 3.2 wavefronts per atomic, shared memory 89 % busy (counters). (Equal values
// are not: one instruction counts the lanes with the same address.)
__global__ void count_per_warp_copies(const std::uint8_t* values, std::size_t n, Counter* counts) {
    __shared__ unsigned counters[kWarps][kBins];  // [copy][bin]
    for (int copy = 0; copy < kWarps; ++copy)
        counters[copy][threadIdx.x] = 0;
    __syncthreads();

    unsigned* const own = counters[threadIdx.x / kWarpSize];
    for_each_in_packs(values, n, [&](std::uint8_t value) { atomicAdd(own + value, 1); });
    __syncthreads();

    unsigned count = 0;
    for (int copy = 0; copy < kWarps; ++copy)
        count += counters[copy][threadIdx.x];
    if (count != 0) atomicAdd(counts + threadIdx.x, count);
}

inline void launch_per_warp_copies(const std::uint8_t* values, std::size_t n, Counter* counts,
                                   cudaStream_t stream) {
    const unsigned blocks = few_blocks(count_per_warp_copies, kBlock, n, sizeof(Words));
    count_per_warp_copies<<<blocks, kBlock, 0, stream>>>(values, n, counts);
}

constexpr int kLaneBlock = 512;  // all 16 warps share the copies: fewer blocks, fewer copies to add

// Idea: a copy per lane. The 32 copies of a counter are adjacent, so lane l always adds in bank l,
// whatever the data. Warps share the copies.
// Cost removed: all bank conflicts.
// Still limits it: memory bandwidth (counters: DRAM 83 % busy). Shared memory, with one wavefront
// per atomic, is 55 % busy.
__global__ void __launch_bounds__(kLaneBlock)
    count_lane_copies(const std::uint8_t* values, std::size_t n, Counter* counts) {
    __shared__ unsigned counters[kBins * kWarpSize];  // bin * kWarpSize + lane
    for (int i = threadIdx.x; i < kBins * kWarpSize; i += kLaneBlock)
        counters[i] = 0;
    __syncthreads();

    const unsigned lane = threadIdx.x % kWarpSize;
    for_each_in_packs(values, n,
                      [&](std::uint8_t value) { atomicAdd(counters + value * kWarpSize + lane, 1); });
    __syncthreads();

    if (threadIdx.x >= kBins) return;
    const unsigned bin = threadIdx.x;
    unsigned count = 0;
    // A thread adds the copies of one bin. If all started at copy 0, all lanes would read bank 0.
#pragma unroll 8
    for (unsigned i = 0; i < kWarpSize; ++i)
        count += counters[bin * kWarpSize + (i + bin) % kWarpSize];
    if (count != 0) atomicAdd(counts + bin, count);
}

inline void launch_lane_copies(const std::uint8_t* values, std::size_t n, Counter* counts,
                               cudaStream_t stream) {
    const unsigned blocks = few_blocks(count_lane_copies, kLaneBlock, n, sizeof(Words));
    count_lane_copies<<<blocks, kLaneBlock, 0, stream>>>(values, n, counts);
}

}  // namespace day12
