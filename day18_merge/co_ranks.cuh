// Co-ranks by themselves, besides the versions, so that an exercise can test them before any merge
// works. `ranks` has an element for each k or, by warps, 32 for each.
#pragma once

#include "beyond/co_rank_by_warp.cuh"
#include "co_rank.cuh"
#include "common/device/grid.hpp"

namespace day18 {

constexpr int kCoRankBlock = 64;

// ranks[k] becomes the co-rank of k, for k = 0 to m + n. One thread for each.
__global__ void find_co_ranks(const Key* a, std::size_t m, const Key* b, std::size_t n, std::size_t* ranks) {
    const std::size_t k = std::size_t{blockIdx.x} * kCoRankBlock + threadIdx.x;
    if (k <= m + n) ranks[k] = co_rank(k, a, m, b, n);
}

inline void launch_find_co_ranks(const Key* a, std::size_t m, const Key* b, std::size_t n, std::size_t* ranks,
                                 cudaStream_t stream) {
    const unsigned grid = course::blocks_for(m + n + 1, kCoRankBlock);
    find_co_ranks<<<grid, kCoRankBlock, 0, stream>>>(a, m, b, n, ranks);
}

// The same, by one warp for each. ranks[32 k + l] is the result in lane l: all lanes get it.
__global__ void find_co_ranks_by_warps(const Key* a, std::size_t m, const Key* b, std::size_t n,
                                       std::size_t* ranks) {
    const std::size_t thread = std::size_t{blockIdx.x} * kCoRankBlock + threadIdx.x;
    const std::size_t k = thread / kWarpSize;
    if (k <= m + n) ranks[thread] = co_rank_by_warp(k, a, m, b, n);
}

inline void launch_find_co_ranks_by_warps(const Key* a, std::size_t m, const Key* b, std::size_t n,
                                          std::size_t* ranks, cudaStream_t stream) {
    const unsigned grid = course::blocks_for((m + n + 1) * kWarpSize, kCoRankBlock);
    find_co_ranks_by_warps<<<grid, kCoRankBlock, 0, stream>>>(a, m, b, n, ranks);
}

}  // namespace day18
