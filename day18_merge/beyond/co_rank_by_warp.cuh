// Day 18, beyond: the co-rank, found by a warp.
#pragma once

#include "co_rank.cuh"

namespace day18 {

using Value = std::int32_t;

constexpr int kWarpSize = 32;
constexpr unsigned kWholeWarp = 0xffffffff;

// Like co_rank, by a warp: all lanes get the result. In each round 32 lanes test 32 elements, so
// six rounds replace 28 steps that wait for memory.
__device__ inline std::size_t co_rank_by_warp(std::size_t k, const Key* a, std::size_t m, const Key* b,
                                              std::size_t n) {
    const unsigned lane = threadIdx.x % kWarpSize;
    std::size_t low = k > n ? k - n : 0;
    std::size_t high = smaller(k, m);
    while (low < high) {
        const std::size_t step = (high - low + kWarpSize - 1) / kWarpSize;
        const std::size_t i = low + lane * step;
        const unsigned votes = __ballot_sync(kWholeWarp, i < high && a[i] <= b[k - 1 - i]);
        // Because the answers are first "yes", then "no", the number of "yes" is where they change.
        const auto yes = static_cast<unsigned>(__popc(static_cast<int>(votes)));
        high = smaller(high, low + yes * step);
        if (yes > 0) low += (yes - 1) * step + 1;
    }
    return low;
}

}  // namespace day18
