// A reduction over the threads of a block: one float per thread becomes one float in every thread.
//
//     const float largest = course::block_reduce<256>(value, course::Max{});
//     const float total = course::block_reduce<256>(value, course::Sum{});
//
// Day 15 builds this reduction step by step; other days only use it.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "common/device/warp.cuh"

namespace course {

// An operation has an identity, the value that does not change the other operand.
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
    static __device__ float identity() { return 0.0f; }
};

// If only one of the two values is NaN, fmaxf returns the other one.
struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
    static __device__ float identity() { return -INFINITY; }
};

// All kThreads threads of the block call it. Each warp reduces its values with shuffles; after one
// barrier every warp reduces the results of all warps.
// Two calls with the same operation need a barrier between them: the second call overwrites what
// slow warps may still be reading. Calls with Max and Sum in turn need none, because each operation
// has its own array.
template <int kThreads, class Op>
__device__ float block_reduce(float value, Op op) {
    constexpr int kWarps = kThreads / kWarpSize;
    static_assert(kThreads % kWarpSize == 0 && kWarps <= kWarpSize,
                  "block_reduce: a block consists of whole warps, at most one for each lane");
    __shared__ float of_warp[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    value = warp_reduce(value, op);
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    return warp_reduce(lane < kWarps ? of_warp[lane] : Op::identity(), op);
}

}  // namespace course
