// Operations of the 32 threads of a warp without shared memory.
#pragma once

#include <cuda_runtime.h>

namespace course {

// How many threads fit on a multiprocessor of the GPU that the code is compiled for (CUDA C++
// Programming Guide, compute capabilities). Launch bounds above that are an error.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr int kThreadsPerMultiprocessor = 1024;
#elif defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
inline constexpr int kThreadsPerMultiprocessor = 1536;
#else
inline constexpr int kThreadsPerMultiprocessor = 2048;
#endif

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

// Reduces the values of all 32 lanes with op and returns the result in every lane. Takes five
// exchanges, each with the lane whose number differs in one bit. All lanes of the warp must call
// it; op must be associative and commutative.
template <class T, class Op>
__device__ T warp_reduce(T value, Op op) {
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
        value = op(value, __shfl_xor_sync(kWholeWarp, value, distance));
    return value;
}

}  // namespace course
