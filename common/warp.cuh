// What the 32 threads of a warp can do together without shared memory.
#pragma once

#include <cuda_runtime.h>

namespace course {

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

// op over the values of all 32 lanes, the result in every lane: five exchanges with the lane whose number differs in one bit.
// All lanes of the warp must call it; op must be associative and commutative.
template <class T, class Op>
__device__ T warp_reduce(T value, Op op) {
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
        value = op(value, __shfl_xor_sync(kWholeWarp, value, distance));
    return value;
}

}  // namespace course
