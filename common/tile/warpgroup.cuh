// What a warpgroup needs in every kernel with a ring of stages and wgmma: its place in the ring,
// the release of a stage, values held in registers. Days 34, 43 and 44 use it; day 41 explains it.
#pragma once

#include <cuda_runtime.h>

#include "common/device/ptx_hopper.cuh"

namespace course {

constexpr int kWarpgroup = 128;  // threads: the four warps that issue a wgmma together

// The stage of a step and the parity of its phase, counted without a division.
template <int STAGES>
struct RingPosition {
    int stage = 0;
    unsigned parity = 0;

    __device__ void advance() {
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        if (stage == 0) parity ^= 1;
    }
};

// One thread of a consumer warpgroup arrives for all of them.
__device__ inline void release(ptx::MBarrier* empty) {
    if (threadIdx.x % kWarpgroup == 0) ptx::mbarrier_arrive(empty);
}

// The values are made here. Otherwise the compiler may move arithmetic across a wait for products,
// which it does not know to write registers.
template <int COUNT>
__device__ void hold(float (&values)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        ptx::hold(values[i]);
}
template <int COUNT>
__device__ void clear(float (&values)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        values[i] = 0;
    hold(values);
}

}  // namespace course
