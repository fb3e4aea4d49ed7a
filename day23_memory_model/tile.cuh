// The record of a tile: how a block makes one out of its elements, as day 15 makes a sum. Here the
// question is how blocks put their records together, so this part is in a header of its own.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "record.hpp"

namespace day23 {

constexpr int kBlock = 256;            // threads of a block
constexpr int kEach = 4;               // elements of a thread
constexpr int kTile = kEach * kBlock;  // elements of a tile
constexpr int kWarpSize = 32;
constexpr unsigned kWholeWarp = 0xffffffff;

// The record of the records of all threads of the block. Thread 0 gets it. All threads call it, and
// two calls need a barrier in between.
__device__ inline Record record_of_block(Record mine) {
    __shared__ Record of_warp[kBlock / kWarpSize];
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
        Record other;
        other.count = __shfl_down_sync(kWholeWarp, mine.count, distance);
        other.sum = __shfl_down_sync(kWholeWarp, mine.sum, distance);
        other.least = __shfl_down_sync(kWholeWarp, mine.least, distance);
        other.where = __shfl_down_sync(kWholeWarp, mine.where, distance);
        mine = combined(mine, other);
    }
    if (threadIdx.x % kWarpSize == 0) of_warp[threadIdx.x / kWarpSize] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < kBlock / kWarpSize; ++w)
            mine = combined(mine, of_warp[w]);
    }
    return mine;
}

// The record of tile `tile`, in thread 0.
__device__ inline Record record_of_tile(const int* in, std::size_t n, unsigned tile) {
    Record mine{};
    for (int j = 0; j < kEach; ++j) {
        const std::size_t i = std::size_t{tile} * kTile + j * kBlock + threadIdx.x;
        if (i < n) mine = combined(mine, {1, in[i], in[i], static_cast<long long>(i)});
    }
    return record_of_block(mine);
}

}  // namespace day23
