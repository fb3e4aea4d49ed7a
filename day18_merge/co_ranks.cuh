// Co-ranks by themselves, besides the versions, so that an exercise can test them before any merge
// works.
#pragma once

#include "co_rank.cuh"

namespace day18 {

constexpr int kCoRankBlock = 64;

// ranks[k] becomes the co-rank of k, for k = 0 to m + n. One thread for each.
__global__ void find_co_ranks(const Key* a, std::size_t m, const Key* b, std::size_t n, std::size_t* ranks) {
    const std::size_t k = std::size_t{blockIdx.x} * kCoRankBlock + threadIdx.x;
    if (k <= m + n) ranks[k] = co_rank(k, a, m, b, n);
}

// The same, by one warp for each. ranks[32 k + l] is the result in lane l: all lanes get it.
__global__ void find_co_ranks_by_warps(const Key* a, std::size_t m, const Key* b, std::size_t n,
                                       std::size_t* ranks) {
    const std::size_t thread = std::size_t{blockIdx.x} * kCoRankBlock + threadIdx.x;
    const std::size_t k = thread / kWarpSize;
    if (k <= m + n) ranks[thread] = co_rank_by_warp(k, a, m, b, n);
}

}  // namespace day18
