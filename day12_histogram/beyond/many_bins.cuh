// Day 12, beyond: ints in more bins than a block's shared memory has room for. A few
// frequent values, or a single one, should not make these slow.
//
//   version               where a value is counted                  what limits it
//   many_bins_in_result   in the result itself                      atomics on the same address
//   many_bins_in_parts    blocks share the bins, a part for each    values are read once per part
//   many_bins_cached      frequent bins in shared memory            atomics on different addresses
//
// any_bins chooses one of the last two.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cuda/atomic>

#include "any_bins.cuh"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "histogram.hpp"

namespace day12 {

// --- In the result -------------------------------------------------------------------------------

// Idea: bins that do not fit in shared memory are counted in the result itself.
// Cost removed: none; it is global_atomics for ints.
// Still limits it: L2 performs atomics on one address one after the other. With one value all are.
__global__ void count_bins_in_result(const std::int32_t* values, std::size_t n, EqualBins bins,
                                     Counter* counts) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i >= n) return;
    const unsigned bin = bins.bin(static_cast<unsigned>(values[i]));
    if (bin < bins.count) atomicAdd(counts + bin, 1);
}

inline void launch_count_bins_in_result(const std::int32_t* values, std::size_t n, const EqualBins& bins,
                                        Counter* counts, cudaStream_t stream) {
    const unsigned blocks = course::blocks_for(n, kBlock);
    count_bins_in_result<<<blocks, kBlock, 0, stream>>>(values, n, bins, counts);
}

// --- In parts ------------------------------------------------------------------------------------

constexpr int kTileEach = 16;  // values of a thread that are loaded before the first is counted

// Calls visit(value) for this thread's values of a tile of kThreads * kTileEach, or of the rest.
template <int kThreads, class Visit>
__device__ void for_each_in_tile(const std::int32_t* values, std::size_t n, std::size_t tile, Visit visit) {
    constexpr unsigned kTile = kThreads * kTileEach;
    const std::size_t first = tile * kTile;
    const unsigned size = n - first < kTile ? static_cast<unsigned>(n - first) : kTile;
    std::int32_t loaded[kTileEach];
    if (size == kTile) {
#pragma unroll
        for (int k = 0; k < kTileEach; ++k)
            loaded[k] = values[first + k * kThreads + threadIdx.x];
#pragma unroll
        for (int k = 0; k < kTileEach; ++k)
            visit(loaded[k]);
    } else {
        for (unsigned i = threadIdx.x; i < size; i += kThreads)
            visit(values[first + i]);
    }
}

constexpr int kPartBlock = 1024;
constexpr std::size_t kPartTile = kPartBlock * kTileEach;

// Idea: the blocks of column p of the grid count in shared memory, and only the values of part p of
// the bins. Blocks of a row read the same values at about the same time: all but the first of them
// find the values in L2.
// Cost removed: atomics on the result, of which L2 performs those on the same address one by one.
// Still limits it: each part reads all values.
__global__ void __launch_bounds__(kPartBlock)
    count_bins_in_parts(const std::int32_t* values, std::size_t n, EqualBins bins, unsigned part,
                        Counter* counts) {
    extern __shared__ unsigned counters[];  // of `part` bins, from `first` on
    const unsigned first = blockIdx.x * part;
    const unsigned own = min(part, bins.count - first);
    for (unsigned i = threadIdx.x; i < own; i += kPartBlock)
        counters[i] = 0;
    __syncthreads();

    const std::size_t tiles = course::ceil_div(n, kPartTile);
    for (std::size_t tile = blockIdx.y; tile < tiles; tile += gridDim.y) {
        for_each_in_tile<kPartBlock>(values, n, tile, [&](std::int32_t value) {
            // A bin before `first` wraps to a number above all others.
            const unsigned i = bins.bin(static_cast<unsigned>(value)) - first;
            if (i < own) atomicAdd(counters + i, 1);
        });
    }
    __syncthreads();

    for (unsigned i = threadIdx.x; i < own; i += kPartBlock)
        if (const unsigned count = counters[i]; count != 0) atomicAdd(counts + first + i, count);
}

// most_bins: counters that a block has room for.
inline void launch_count_bins_in_parts(const std::int32_t* values, std::size_t n, const EqualBins& bins,
                                       std::size_t most_bins, Counter* counts, cudaStream_t stream) {
    const auto fewest_parts = course::ceil_div<std::size_t>(bins.count, most_bins);
    const auto part = static_cast<unsigned>(course::ceil_div<std::size_t>(bins.count, fewest_parts));
    const unsigned parts = course::ceil_div(bins.count, part);
    const std::size_t shared = part * sizeof(unsigned);
    course::allow_shared_bytes(count_bins_in_parts, shared);

    const unsigned at_once = course::resident_blocks(count_bins_in_parts, kPartBlock, shared) / parts;
    const unsigned most = course::blocks_for(course::ceil_div(n, kPartTile), 1);
    const unsigned fewest = course::blocks_for(n, 1 << 30);  // a counter of a block has 32 bits
    const unsigned rows = std::min(most, std::max({fewest, at_once, 1U}));
    course::launch(count_bins_in_parts, {{parts, rows}, kPartBlock, shared, stream}, values, n, bins, part,
                   counts);
}

// --- With a cache --------------------------------------------------------------------------------

constexpr int kCacheBlock = 512;
constexpr std::size_t kCacheTile = kCacheBlock * kTileEach;
constexpr int kCacheBits = 12;
constexpr unsigned kCacheSlots = 1U << kCacheBits;
constexpr int kTilesOfACache = 16;  // the cache is emptied after so many tiles
constexpr unsigned kNoBin = ~0U;    // there are at most 2^31 bins

// Counters of a block for the bins that claimed a slot.
struct Cache {
    unsigned bins[kCacheSlots];  // kNoBin, or the bin that has the slot until the cache is emptied
    unsigned counts[kCacheSlots];
};

// Counts a value of `bin`, or returns false: other bins have both of its slots. A frequent bin is
// likely to be the first to claim one.
__device__ inline bool count_in_cache(Cache& cache, unsigned bin) {
    // Fibonacci hashing: adjacent bins are in distant slots.
    const unsigned home = bin * 2654435769U >> (32 - kCacheBits);
#pragma unroll
    for (unsigned way = 0; way < 2; ++way) {
        const unsigned slot = home ^ way;
        // Other threads may claim the slot at this moment: a plain load would be a race.
        unsigned holder = cuda::atomic_ref<unsigned, cuda::thread_scope_block>(cache.bins[slot])
                              .load(cuda::memory_order_relaxed);
        if (holder == kNoBin) {
            holder = atomicCAS(cache.bins + slot, kNoBin, bin);
            if (holder == kNoBin) holder = bin;
        }
        if (holder == bin) {
            atomicAdd(cache.counts + slot, 1);
            return true;
        }
    }
    return false;
}

// Idea: values of the same bin meet in a cache of the block, and a bin that many of them have adds
// to the result once for each 16 tiles. The other bins add to the result itself. After that the
// cache is emptied, so that bins that become frequent later find room.
// Cost removed: contention in L2 where few bins have most of the values, with one pass over them. A
// cache that is full of rare bins stays so for 16 tiles, and a bin that becomes frequent meanwhile
// is counted in L2.
// Still limits it: with values spread evenly, an atomic on the result for nearly each of them.
__global__ void __launch_bounds__(kCacheBlock)
    count_bins_cached(const std::int32_t* values, std::size_t n, EqualBins bins, Counter* counts) {
    __shared__ Cache cache;
    for (unsigned slot = threadIdx.x; slot < kCacheSlots; slot += kCacheBlock) {
        cache.bins[slot] = kNoBin;
        cache.counts[slot] = 0;
    }
    __syncthreads();

    const std::size_t tiles = course::ceil_div(n, kCacheTile);
    for (std::size_t tile = blockIdx.x; tile < tiles;) {
        for (int i = 0; i < kTilesOfACache && tile < tiles; ++i, tile += gridDim.x) {
            for_each_in_tile<kCacheBlock>(values, n, tile, [&](std::int32_t value) {
                const unsigned bin = bins.bin(static_cast<unsigned>(value));
                if (bin < bins.count && !count_in_cache(cache, bin)) atomicAdd(counts + bin, 1);
            });
        }
        __syncthreads();  // all values are counted
        for (unsigned slot = threadIdx.x; slot < kCacheSlots; slot += kCacheBlock) {
            if (cache.bins[slot] == kNoBin) continue;
            atomicAdd(counts + cache.bins[slot], cache.counts[slot]);
            cache.bins[slot] = kNoBin;
            cache.counts[slot] = 0;
        }
        __syncthreads();  // the cache is empty
    }
}

inline void launch_count_bins_cached(const std::int32_t* values, std::size_t n, const EqualBins& bins,
                                     Counter* counts, cudaStream_t stream) {
    const unsigned most = course::blocks_for(course::ceil_div(n, kCacheTile), 1);
    const unsigned at_once = course::resident_blocks(count_bins_cached, kCacheBlock);
    course::launch(count_bins_cached, {std::min(most, at_once), kCacheBlock, 0, stream}, values, n, bins,
                   counts);
}

}  // namespace day12
