// Day 18, beyond: merging in registers.
//
//   version           what is new                                   what limits it
//   merge_path        a kernel finds splits; merge in registers     L1 and shared memory; L2, issue, memory
#pragma once

#include "common/device/grid.hpp"
#include "merge.cuh"

namespace day18 {

constexpr int kPathBlock = 256;
constexpr int kPathShare = 15;  // elements per thread; odd, so that threads use different banks
constexpr unsigned kPathTile = kPathBlock * kPathShare;  // 3,840 elements of the output
constexpr int kPartitionBlock = 64;

// One thread for each boundary between tiles, and for both ends: splits[t] is the co-rank of the
// start of tile t.
__global__ void partition(const Key* a, std::size_t m, const Key* b, std::size_t n, std::size_t tiles,
                          std::size_t* splits) {
    const std::size_t t = std::size_t{blockIdx.x} * kPartitionBlock + threadIdx.x;
    if (t <= tiles) splits[t] = co_rank(smaller(t * kPathTile, m + n), a, m, b, n);
}

// A thread merges its share of a tile, of which a and b have size_a and size_b elements, from a[i]
// and b[j] on. All indices of `merged` are constants, so it stays in registers.
__device__ inline void merge_share(const Key* a, unsigned size_a, unsigned i, const Key* b, unsigned size_b,
                                   unsigned j, Key (&merged)[kPathShare]) {
    Key next_a = i < size_a ? a[i] : 0;
    Key next_b = j < size_b ? b[j] : 0;
#pragma unroll
    for (int x = 0; x < kPathShare; ++x) {
        const bool from_a = j >= size_b || (i < size_a && next_a <= next_b);
        merged[x] = from_a ? next_a : next_b;
        if (from_a) {
            if (++i < size_a) next_a = a[i];
        } else {
            if (++j < size_b) next_b = b[j];
        }
    }
}

// Idea: a separate kernel computes all splits (partition), so a block loads exactly the 3,840
// elements that it merges. A thread merges 15 of them in registers, and the tile goes through
// shared memory once more, so that stores are coalesced. S. Odeh, O. Green, Z. Mwassi, O. Shmueli,
// Y. Birk, "Merge Path", 2012.
// Cost removed: the searches in global memory at the start of every block; the scattered stores.
// Still limits it: several units nearly as much. Counters at 2^28: L2 81 % busy, issue slots 78 %,
// L1 71 % (shared memory is in the same unit), ALU and memory 69 %. None is full, because a block
// loads, then merges, then stores, and only other blocks of the SM use the memory while it merges.
__global__ void __launch_bounds__(kPathBlock) merge_path(const Key* a, std::size_t m, const Key* b,
                                                         std::size_t n, const std::size_t* splits, Key* out) {
    __shared__ Key tile[kPathTile];  // first what comes from a, then what comes from b
    const std::size_t k = std::size_t{blockIdx.x} * kPathTile;
    const auto size = static_cast<unsigned>(smaller<std::size_t>(m + n - k, kPathTile));
    const std::size_t i_tile = splits[blockIdx.x];
    const auto size_a = static_cast<unsigned>(splits[blockIdx.x + 1] - i_tile);
    const Key* const from_a = a + i_tile;
    const Key* const from_b = b + (k - i_tile);
    Key mine[kPathShare];
#pragma unroll
    for (int x = 0; x < kPathShare; ++x) {
        const unsigned place = x * kPathBlock + threadIdx.x;
        if (place < size) mine[x] = place < size_a ? from_a[place] : from_b[place - size_a];
    }
#pragma unroll
    for (int x = 0; x < kPathShare; ++x) {
        const unsigned place = x * kPathBlock + threadIdx.x;
        if (place < size) tile[place] = mine[x];
    }
    __syncthreads();

    const Key* const tile_b = tile + size_a;
    const unsigned size_b = size - size_a;
    const unsigned first = smaller(threadIdx.x * kPathShare, size);
    const unsigned i = co_rank<unsigned>(first, tile, size_a, tile_b, size_b);
    merge_share(tile, size_a, i, tile_b, size_b, first - i, mine);

    // All threads have read what they merge, so the tile is safe to overwrite.
    __syncthreads();
#pragma unroll
    for (int x = 0; x < kPathShare; ++x)
        if (first + x < size) tile[first + x] = mine[x];
    __syncthreads();
#pragma unroll
    for (int x = 0; x < kPathShare; ++x) {
        const unsigned place = x * kPathBlock + threadIdx.x;
        if (place < size) out[k + place] = tile[place];
    }
}

// `splits` has room for an element for each tile of kPathTile, and one more.
inline void launch_merge_path(const Key* a, std::size_t m, const Key* b, std::size_t n, std::size_t* splits,
                              Key* out, cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(m + n, kPathTile);
    const unsigned grid = course::blocks_for(std::size_t{tiles} + 1, kPartitionBlock);
    partition<<<grid, kPartitionBlock, 0, stream>>>(a, m, b, n, tiles, splits);
    merge_path<<<tiles, kPathBlock, 0, stream>>>(a, m, b, n, splits, out);
}

}  // namespace day18
