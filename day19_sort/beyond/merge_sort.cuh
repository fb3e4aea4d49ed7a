// Day 19, beyond: two sorts that compare keys.
//
//   version                what is new                                   what limits it
//   bitonic_block          a network of distant pairs                    one block
//   merge_sort             sorted tiles are merged                       latency of log2(n / 2048) passes
#pragma once

#include "sort.cuh"

namespace day19 {

// --- A network, which sorts the tiles of merge sort ----------------------------------------------

// Puts two keys of a tile in order: the smaller one goes to place i.
__device__ inline void order(Key* tile, unsigned i, unsigned j) {
    const Key x = tile[i];
    const Key y = tile[j];
    if (x <= y) return;
    tile[i] = y;
    tile[j] = x;
}

constexpr int kBitonicBlock = 1024;              // threads
constexpr unsigned kSorted = 2 * kBitonicBlock;  // keys of a tile

// Sorts the whole tile. A bitonic sequence goes up and then down, perhaps after a rotation.
// Ordering keys that are half its length apart turns it into two bitonic sequences, each half as
// long, and no key of the first is larger than one of the second. With strides of half the length,
// a quarter, ... 1 it is sorted. Sequences of 2 are always bitonic. One of them sorted upwards and
// the next downwards form a bitonic sequence of 4, and so on.
__device__ inline void bitonic_sort(Key* tile) {
    for (unsigned length = 2; length <= kSorted; length *= 2) {
        for (unsigned stride = length / 2; stride > 0; stride /= 2) {
            // The first key of this thread's pair: its number with a 0 inserted at the bit of
            // `stride`.
            const unsigned i = 2 * threadIdx.x - threadIdx.x % stride;
            const bool upwards = (i & length) == 0;
            order(tile, upwards ? i : i + stride, upwards ? i + stride : i);
            __syncthreads();
        }
    }
}

// Idea: a sorting network, in which keys move far in a phase: 66 phases for 2,048 keys. Missing
// keys become the largest possible key.
// Cost removed: n phases become log2(n) (log2(n) + 1) / 2.
// Still limits it: as one sort, latency: one block, and each phase reads and writes all keys. It is
// not stable: with values, those of equal keys could change their order.
//
// Block b sorts keys 2,048 b to 2,048 b + 2,047: one block is a sort, many are the first step of
// merge_sort.
__global__ void __launch_bounds__(kBitonicBlock) bitonic_block(const Key* in, std::size_t n, Key* out) {
    __shared__ Key tile[kSorted];
    const std::size_t first = std::size_t{blockIdx.x} * kSorted;
    for (unsigned i = threadIdx.x; i < kSorted; i += kBitonicBlock)
        tile[i] = first + i < n ? in[first + i] : 0xffffffff;
    __syncthreads();
    bitonic_sort(tile);
    for (unsigned i = threadIdx.x; i < kSorted; i += kBitonicBlock)
        if (first + i < n) out[first + i] = tile[i];
}

// As many blocks as there are tiles: one tile is a sort.
inline void launch_bitonic_block(const Key* in, std::size_t n, Key* out, cudaStream_t stream) {
    bitonic_block<<<course::blocks_for(n, kSorted), kBitonicBlock, 0, stream>>>(in, n, out);
}

// --- Merge sort ----------------------------------------------------------------------------------

// The co-rank of k: how many of the first k keys of the output come from `a`, when sorted a and b
// are merged (day 18).
template <class Index>
__device__ Index co_rank(Index k, const Key* a, Index m, const Key* b, Index n) {
    Index low = k > n ? k - n : 0;
    Index high = k < m ? k : m;
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

constexpr int kMergeBlock = 256;
constexpr unsigned kMergeShare = kSorted / kMergeBlock;  // 8 keys of the output per thread

__device__ inline std::size_t smaller(std::size_t x, std::size_t y) {
    return x < y ? x : y;
}

// Idea: `in` consists of sorted runs; each pair of adjacent runs is merged to one run of twice the
// length. A block merges 2,048 keys of the output. Because the length of a run is a multiple of
// that, they come from one pair. Two threads search for the co-ranks of the start and the end of
// the block's part.
// Cost removed: the limit to one block.
// Still limits it: latency with 2^20 keys (counters: no unit above 40 %, barriers take 37 % of the
// time of its warps). Every doubling is a pass that reads and writes all keys: 17 for 2^28 of them.
__global__ void __launch_bounds__(kMergeBlock)
    merge_runs(const Key* in, std::size_t n, std::size_t run, Key* out) {
    __shared__ Key tile[kSorted];
    __shared__ std::size_t found[2];
    const std::size_t begin = std::size_t{blockIdx.x} * kSorted;  // of the block's part of the output
    const std::size_t pair = begin / (2 * run) * (2 * run);       // where a starts
    const Key* const a = in + pair;
    const std::size_t m = smaller(run, n - pair);
    const Key* const b = a + m;
    const std::size_t size_of_b = smaller(run, n - pair - m);

    const std::size_t k = begin - pair;
    const std::size_t k_end = smaller(k + kSorted, m + size_of_b);
    if (threadIdx.x < 2) found[threadIdx.x] = co_rank(threadIdx.x == 0 ? k : k_end, a, m, b, size_of_b);
    __syncthreads();
    const std::size_t first_a = found[0];
    const std::size_t first_b = k - first_a;
    const auto size = static_cast<unsigned>(k_end - k);
    const auto size_a = static_cast<unsigned>(found[1] - first_a);
    for (unsigned i = threadIdx.x; i < size; i += kMergeBlock)
        tile[i] = i < size_a ? a[first_a + i] : b[first_b + i - size_a];
    __syncthreads();

    // Each thread merges 8 keys in registers.
    const Key* const tile_b = tile + size_a;
    const unsigned tile_b_size = size - size_a;
    const unsigned first = threadIdx.x * kMergeShare < size ? threadIdx.x * kMergeShare : size;
    unsigned i = co_rank<unsigned>(first, tile, size_a, tile_b, tile_b_size);
    unsigned j = first - i;
    Key merged[kMergeShare];
#pragma unroll
    for (unsigned x = 0; x < kMergeShare; ++x) {
        if (first + x >= size) continue;
        const bool from_a = j == tile_b_size || (i < size_a && tile[i] <= tile_b[j]);
        merged[x] = from_a ? tile[i++] : tile_b[j++];
    }
    // All threads have read what they merge, so the tile is safe to overwrite.
    __syncthreads();
#pragma unroll
    for (unsigned x = 0; x < kMergeShare; ++x)
        if (first + x < size) tile[first + x] = merged[x];
    __syncthreads();
    for (unsigned x = threadIdx.x; x < size; x += kMergeBlock)
        out[begin + x] = tile[x];
}

inline void launch_merge_sort(const Key* in, std::size_t n, Key* out, Key* spare, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(n, kSorted);
    int passes = 1;  // the first one sorts tiles; each further one doubles the length of runs
    while (std::size_t{kSorted} << (passes - 1) < n)
        ++passes;
    for (int pass = 0; pass < passes; ++pass) {
        Key* const to = (passes - pass) % 2 == 1 ? out : spare;
        if (pass == 0) {
            launch_bitonic_block(in, n, to, stream);
        } else {
            merge_runs<<<grid, kMergeBlock, 0, stream>>>(in, n, std::size_t{kSorted} << (pass - 1), to);
        }
        in = to;
    }
}

}  // namespace day19
