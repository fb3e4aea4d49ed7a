// Day 50, beyond: one kernel for all steps, flags in peer memory. Read multi_gpu.cuh first.
//
//   ./course run day50 --only persistent
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cuda/atomic>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "multi_gpu.cuh"
#include "multi_gpu.hpp"

namespace day50 {

// A flag counts the steps that a rank has done. It lies in the memory of the GPU that polls it.
struct Flags {
    Progress* mine;
    unsigned* below;  // in the memory of the rank below, set by this rank; null where there is none
    unsigned* above;  // the same in the memory of the rank above
};

using SystemFlag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

// Waits until the flag is at least `steps`. It wraps round at 2^32, so the sign of the difference
// decides. Acquire: loads after this one see the stores of the neighbour before it set the flag.
// The fence is after the loop, because an acquire invalidates the L1 cache, which other blocks are
// using.
__device__ inline void wait_for(unsigned& flag, unsigned steps) {
    while (static_cast<int>(SystemFlag(flag).load(cuda::memory_order_relaxed) - steps) < 0) {
    }
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_system);
}

// True for the last block of the grid to arrive. It sets `arrived` to 0 again for the next step.
// Acquire and release: the stores of the other blocks happen before the next operations of the last
// one, also for a neighbour that acquires its flag.
__device__ inline bool is_last_to_arrive(unsigned& arrived) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> count(arrived);
    if (count.fetch_add(1, cuda::memory_order_acq_rel) + 1 < gridDim.x) return false;
    count.store(0, cuda::memory_order_relaxed);
    return true;
}

// Idea: one launch for all steps. In each step, the last block of a GPU to finish sets its GPU's
// flag here and in the memory of both neighbours. Before the next step, all blocks wait for three
// flags: of their own GPU and of both neighbours. Polling stays inside a GPU; only the store
// crosses the link.
// Cost removed: launches and events. A step starts as soon as the neighbours' planes have arrived.
// Still limits it: the latency of planes and flag on the link. Flags are set after the whole slab,
// not after its edges.
//
// Before step k a rank waits until its neighbours have done k steps. Then its ghost planes have
// arrived. And the neighbours no longer read the ghost planes that step k overwrites: those were
// read in step k - 1. `done` is the number of steps of earlier launches.
//
// A tile is `depth` planes deep. Blocks drift apart, so data that one block has loaded may have
// been evicted from the L2 cache when another one needs it. A deep tile shares fewer planes with
// others.
__global__ void persistent(Grids grids, Local local, Weights weights, Neighbours to_out, Neighbours to_spare,
                           Flags flags, unsigned steps, unsigned done, int depth) {
    const bool leads = threadIdx.x == 0 && threadIdx.y == 0;
    const int tiles_x = (local.nx + kCols - 1) / kCols;
    const int tiles_y = (local.ny + kRows - 1) / kRows;
    const int tiles_z = (local.planes + depth - 1) / depth;
    const long long tiles = static_cast<long long>(tiles_x) * tiles_y * tiles_z;
    for (unsigned step = 0; step < steps; ++step) {
        if (leads) wait_for(flags.mine->own, done + step);
        if (leads && to_out.below != nullptr) wait_for(flags.mine->below, done + step);
        if (leads && to_out.above != nullptr) wait_for(flags.mine->above, done + step);
        __syncthreads();
        const float* const in = grids.source(step, steps);
        float* const out = grids.target(step, steps);
        const Neighbours to = out == grids.out ? to_out : to_spare;
        for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const int x = static_cast<int>(tile % tiles_x) * kCols + static_cast<int>(threadIdx.x);
            const int y = static_cast<int>(tile / tiles_x % tiles_y) * kRows + static_cast<int>(threadIdx.y);
            const int first = edges_first(static_cast<int>(tile / tiles_x / tiles_y), tiles_z) * depth;
            if (x >= local.nx || y >= local.ny) continue;
            sweep_column(in, out, local, weights, to, x, y, first, min(first + depth, local.planes));
        }
        __syncthreads();  // the stores of all threads of this block come before its arrival
        if (leads && is_last_to_arrive(flags.mine->arrived)) {
            // One fence, which takes a microsecond, releases to all three.
            cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
            for (unsigned* const flag : {&flags.mine->own, flags.below, flags.above})
                if (flag != nullptr) SystemFlag(*flag).store(done + step + 1, cuda::memory_order_relaxed);
        }
    }
}

// How deep are the tiles? Blocks differ by at most one tile. Deep tiles share fewer planes with
// others; shallow ones leave fewer blocks idle at the end.
inline int depth_of_tiles(const Local& local, long long columns, long long blocks) {
    constexpr int kDeepest = 32;
    constexpr int kShared = 2;  // planes; what a tile costs besides its own, measured in planes
    const auto cost = [&](int depth) {
        const long long tiles = columns * ((local.planes + depth - 1) / depth);
        return (tiles + blocks - 1) / blocks * (depth + kShared);
    };
    int best = 1;
    for (int depth = 2; depth <= std::min(kDeepest, local.planes); ++depth)
        if (cost(depth) <= cost(best)) best = depth;
    return best;
}

// All blocks of the grid must be resident at the same time, because they wait for each other: a
// cooperative launch refuses more of them than the GPU holds.
inline void launch_persistent(Grids grids, Local local, Neighbours to_out, Neighbours to_spare, Flags flags,
                              unsigned steps, unsigned done, cudaStream_t stream) {
    const dim3 tiles = blocks_for_planes(local, local.planes);
    const long long columns = static_cast<long long>(tiles.x) * tiles.y;
    const long long resident = course::resident_blocks(persistent, kCols * kRows);
    int depth = depth_of_tiles(local, columns, resident);
    const long long blocks = std::min(columns * ((local.planes + depth - 1) / depth), resident);
    Weights weights = kWeights;
    void* arguments[] = {&grids, &local, &weights, &to_out, &to_spare, &flags, &steps, &done, &depth};
    CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&persistent),
                                           dim3(static_cast<unsigned>(blocks)), dim3(kCols, kRows), arguments,
                                           0, stream));
}

}  // namespace day50
