// The scan that all radix sorts share, that of day 16 in two kernels: what each count has before
// it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"

namespace day19 {

constexpr int kWarpSize = 32;
constexpr unsigned kWholeWarp = 0xffffffff;
constexpr int kScanBlock = 1024;  // threads of a block that scans, and counts of a part

// The sum of the values of all threads before this one, as in day 16. `total` gets the sum of all
// threads' values. Two calls need a barrier in between.
template <int kThreads, class T>
__device__ T sum_before(T value, T& total) {
    __shared__ T of_warp[kThreads / kWarpSize];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    T inclusive = value;
    for (int stride = 1; stride < kWarpSize; stride *= 2) {
        const T left = __shfl_up_sync(kWholeWarp, inclusive, stride);
        if (lane >= stride) inclusive += left;
    }
    if (lane == kWarpSize - 1) of_warp[warp] = inclusive;
    __syncthreads();
    T of_warps_before = 0;
    total = 0;
    for (int w = 0; w < kThreads / kWarpSize; ++w) {
        if (w == warp) of_warps_before = total;
        total += of_warp[w];
    }
    return of_warps_before + inclusive - value;
}

// The first kernel of the scan: each block scans its part of the counts, 1,024 of them.
__global__ void __launch_bounds__(kScanBlock) scan_parts(unsigned* counts, std::size_t n, std::size_t* sums) {
    const std::size_t i = std::size_t{blockIdx.x} * kScanBlock + threadIdx.x;
    const unsigned mine = i < n ? counts[i] : 0;
    unsigned total;
    const unsigned before = sum_before<kScanBlock>(mine, total);
    if (i < n) counts[i] = before;
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// The second kernel, one block: each sum becomes that of all parts before it. sums[parts] becomes
// the sum of all. Later kernels add: the scan of count i is counts[i] + sums[i / 1024].
__global__ void __launch_bounds__(kScanBlock) scan_sums(std::size_t* sums, std::size_t parts) {
    std::size_t before = 0;  // of these 1,024 parts
    for (std::size_t first = 0; first < parts; first += kScanBlock) {
        const std::size_t i = first + threadIdx.x;
        const std::size_t mine = i < parts ? sums[i] : 0;
        std::size_t total;
        const std::size_t here = sum_before<kScanBlock>(mine, total);
        if (i < parts) sums[i] = before + here;
        before += total;
        // The next call of sum_before overwrites its shared memory.
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[parts] = before;
}

// sums: one for each 1,024 counts, and one more.
inline void launch_scan(unsigned* counts, std::size_t n, std::size_t* sums, cudaStream_t stream) {
    const unsigned parts = course::blocks_for(n, kScanBlock);
    scan_parts<<<parts, kScanBlock, 0, stream>>>(counts, n, sums);
    scan_sums<<<1, kScanBlock, 0, stream>>>(sums, parts);
}

__device__ inline std::size_t scanned(const unsigned* counts, const std::size_t* sums, std::size_t i) {
    return counts[i] + sums[i / kScanBlock];
}

}  // namespace day19
