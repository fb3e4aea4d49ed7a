// A scan of one value per thread, in registers: of a warp, and of a block.
#pragma once

#include <cuda_runtime.h>

namespace day16 {

constexpr int kBlock = 256;  // threads of a block
constexpr int kWarpSize = 32;
constexpr int kWarps = kBlock / kWarpSize;
constexpr unsigned kWholeWarp = 0xffffffff;

// Kogge-Stone among the lanes of a warp: lane l gets the sum of lanes 0 to l.
template <class T>
__device__ T warp_scan(T value) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    for (int stride = 1; stride < kWarpSize; stride *= 2) {
        const T left = __shfl_up_sync(kWholeWarp, value, stride);
        if (lane >= stride) value += left;
    }
    return value;
}

// The sum of the values of all threads before this one. `total` gets the sum of all threads'
// values. Two calls need a barrier in between.
template <class T>
__device__ T sum_before(T value, T& total) {
    __shared__ T of_warp[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    const T inclusive = warp_scan(value);
    T before = __shfl_up_sync(kWholeWarp, inclusive, 1);
    if (lane == 0) before = 0;
    if (lane == kWarpSize - 1) of_warp[warp] = inclusive;
    __syncthreads();
    T of_warps_before = 0;
    total = 0;
    for (int w = 0; w < kWarps; ++w) {
        if (w == warp) of_warps_before = total;
        total += of_warp[w];
    }
    return of_warps_before + before;
}

}  // namespace day16
