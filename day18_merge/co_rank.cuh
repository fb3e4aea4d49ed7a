// Where a part of a merge starts, found by one thread or by a warp.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace day18 {

using Key = std::int32_t;
using Value = std::int32_t;

constexpr int kWarpSize = 32;
constexpr unsigned kWholeWarp = 0xffffffff;

template <class Index>
__device__ Index smaller(Index x, Index y) {
    return x < y ? x : y;
}

// The co-rank of k: how many of the first k elements of the output come from `a`. The other
// k - co_rank(k) come from `b`.
//
// Compare a[i] with b[k - 1 - i]. If a[i] goes first, there are at most k - 1 elements before it, i
// from a and at most k - 1 - i from b, so it is one of the first k. If not, k elements go before
// it: a[0] to a[i - 1] and b[0] to b[k - 1 - i]. So for i = 0, 1, ... the answers are "yes" up to
// some element, and "no" from there on.
//
// <= and not <: of equal keys, the one from a goes first. A and B: pointers, or types with
// operator[].
template <class Index, class A, class B>
__device__ Index co_rank(Index k, A a, Index m, B b, Index n) {
    Index low = k > n ? k - n : 0;
    Index high = smaller(k, m);
    while (low < high) {
        const Index i = low + (high - low) / 2;
        if (a[i] <= b[k - 1 - i]) {
            low = i + 1;
        } else {
            high = i;
        }
    }
    return low;
}

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
