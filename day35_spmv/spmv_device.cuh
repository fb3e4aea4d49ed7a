// What the kernels of several versions share.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "device_csr.hpp"

namespace day35 {

// The number of this thread in the grid.
__device__ inline Offset global_thread() {
    return static_cast<Offset>(blockIdx.x) * static_cast<Offset>(blockDim.x) + threadIdx.x;
}

// The matrix is read once: its cache lines are evicted first (__ldcs), so that x and y stay.
template <int N, class T>
__device__ course::Pack<T, N> load_once(const T* address) {
    using Word = std::conditional_t<sizeof(T) * N == 16, uint4,
                                    std::conditional_t<sizeof(T) * N == 8, uint2, unsigned>>;
    const Word word = __ldcs(reinterpret_cast<const Word*>(address));
    course::Pack<T, N> pack;
    std::memcpy(&pack, &word, sizeof(pack));
    return pack;
}

// The products of the entries [begin, end) for a block: that of entry i goes to products[i - begin
// rounded down to four]. kBlock threads, at most kPacks packs of four entries each: all loads are
// issued before the first is used. Entries that share a pack with the first or the last one are
// multiplied too, and not used. A barrier must follow.
template <int kBlock, int kPacks, class O>
__device__ void stage_products(const CsrView<O>& a, const float* x, Offset begin, Offset end,
                               float* products) {
    constexpr int kPack = kPackedElements;
    const Offset first = begin / kPack * kPack + threadIdx.x * kPack;
    course::Pack<Index, kPack> cols[kPacks];
    course::Pack<float, kPack> values[kPacks];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
        const Offset i = first + k * kBlock * kPack;
        if (i < end) {
            cols[k] = load_once<kPack>(a.cols + i);
            values[k] = load_once<kPack>(a.values + i);
        }
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
        if (first + k * kBlock * kPack >= end) break;
#pragma unroll
        for (int j = 0; j < kPack; ++j)
            values[k].value[j] *= x[cols[k].value[j]];
        values[k].store(products + (k * kBlock + threadIdx.x) * kPack);
    }
}

// The sum over each group of kLanes neighbouring lanes, in all of them. All lanes of the warp call
// it.
template <int kLanes>
__device__ float sum_of_lanes(float value) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(course::kWholeWarp, value, distance);
    return value;
}

// For each lane the sum of the values from the first lane of its run of equal keys up to itself: a
// segmented scan. Equal keys are neighbours. All lanes of the warp call it.
__device__ inline float sum_of_run(Index key, float value) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
#pragma unroll
    for (int distance = 1; distance < course::kWarpSize; distance *= 2) {
        const Index other_key = __shfl_up_sync(course::kWholeWarp, key, distance);
        const float other = __shfl_up_sync(course::kWholeWarp, value, distance);
        if (lane >= distance && other_key == key) value += other;
    }
    return value;
}

}  // namespace day35
