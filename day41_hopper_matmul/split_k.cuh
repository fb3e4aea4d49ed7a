// Two blocks of a cluster that have each a part of the sums of one tile: they exchange halves through each other's shared memory.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "common/tile/wgmma_tile.cuh"

namespace day41 {

using course::hopper::kWarpgroup;
using course::hopper::Stages;
using course::hopper::Sums;

// The sums of half of a tile's columns; those of a thread one below the other.
template <class S>
using HalfOfSums = float[S::BN / 4][S::MULTIPLIERS * kWarpgroup];

// Stages are done with when sums are exchanged; but not their barriers, which lie behind them.
template <class S>
constexpr bool kFitsIntoStages = sizeof(HalfOfSums<S>) <= sizeof(Stages<S>::a) + sizeof(Stages<S>::b);

// Gives block `to` of the two the sums of its half: block 0 has the left one. `memory` is where each block gets what it is given.
template <class S>
__device__ void give_half(HalfOfSums<S>& memory, int to, const Sums<S>& sums) {
    auto& theirs = *cooperative_groups::this_cluster().map_shared_rank(&memory, to);
    const unsigned thread = threadIdx.x - kWarpgroup;
#pragma unroll
    for (int i = 0; i < S::BN / 4; ++i)
        theirs[i][thread] = to == 0 ? sums[i] : sums[S::BN / 4 + i];
}

// Adds what this block, `rank` of the two, was given.
template <class S>
__device__ void take_half(const HalfOfSums<S>& memory, int rank, Sums<S>& sums) {
    const unsigned thread = threadIdx.x - kWarpgroup;
#pragma unroll
    for (int i = 0; i < S::BN / 4; ++i) {
        const float given = memory[i][thread];
        if (rank == 0) {
            sums[i] += given;
        } else {
            sums[S::BN / 4 + i] += given;
        }
    }
}

}  // namespace day41
