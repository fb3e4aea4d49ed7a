// The range of a group of values: of a thread's, of a warp's, of a block's.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "common/device/octet.cuh"
#include "common/device/warp.cuh"
#include "scheme.hpp"

namespace day30 {

using course::kOctet;
using course::Octet;

// Symmetric: `above` has the bits of max |x|. Asymmetric: `above` has those of max x, `below` those
// of max -x, each at least 0; a NaN is in one of them. No initial values: shared memory holds
// ranges.
struct Range {
    unsigned above, below;

    template <Scheme kScheme>
    __device__ void include(float x) {
        if constexpr (kScheme == Scheme::kSymmetric) {
            above = max(above, __float_as_uint(fabsf(x)));
        } else if (const unsigned bits = __float_as_uint(x); bits < 0x80000000u) {
            above = max(above, bits);
        } else {
            below = max(below, bits - 0x80000000u);
        }
    }
};

// The range of `count` octets. Magnitudes of halves are compared two at a time.
template <Scheme kScheme, class T>
__device__ Range range_of(const Octet<T>* octets, int count) {
    Range range = {};
    if constexpr (kScheme == Scheme::kSymmetric && std::is_same_v<T, __half>) {
        __half2 largest = __float2half2_rn(0);
#pragma unroll
        for (int i = 0; i < count; ++i)
            for (int u = 0; u < kOctet / 2; ++u)
                largest = __hmax2_nan(largest, __habs2(octets[i].unit(u)));
        range.include<kScheme>(__low2float(largest));
        range.include<kScheme>(__high2float(largest));
    } else {
#pragma unroll
        for (int i = 0; i < count; ++i)
            for (int k = 0; k < kOctet; ++k)
                range.include<kScheme>(octets[i][k]);
    }
    return range;
}

template <Scheme kScheme>
__device__ inline Range merge(Range a, Range b) {
    Range merged{.above = max(a.above, b.above), .below = 0};
    if constexpr (kScheme == Scheme::kAsymmetric) merged.below = max(a.below, b.below);
    return merged;
}

template <Scheme kScheme>
__device__ inline Range warp_merge(Range range) {
    const auto larger = [](unsigned a, unsigned b) { return max(a, b); };
    range.above = course::warp_reduce(range.above, larger);
    if constexpr (kScheme == Scheme::kAsymmetric) range.below = course::warp_reduce(range.below, larger);
    return range;
}

// The range of each kGroupThreads adjacent threads, whole warps, in all of them. The block has
// kGroups such groups, and all its threads must call. One barrier; none if a group is one warp.
template <Scheme kScheme, int kGroupThreads, int kGroups = 1>
__device__ Range group_merge(Range range) {
    constexpr int kWarps = kGroupThreads / course::kWarpSize;
    range = warp_merge<kScheme>(range);
    if constexpr (kWarps > 1) {
        static_assert(kWarps <= course::kWarpSize, "group_merge: a lane for each warp");
        __shared__ Range of_warp[kGroups * kWarps];
        const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
        const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
        if (lane == 0) of_warp[warp] = range;
        __syncthreads();
        range = warp_merge<kScheme>(of_warp[warp / kWarps * kWarps + lane % kWarps]);
    }
    return range;
}

}  // namespace day30
