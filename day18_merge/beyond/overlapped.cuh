// Day 18, beyond: the next tile is loaded while this one is merged.
//
//   version           what is new                                   what limits it
//   overlapped        loads while it merges                         instructions; one step at a time
//   overlapped_pairs  the same, with a value for each key           all threads do the same step at a time
#pragma once

#include <algorithm>

#include "beyond/co_rank_by_warp.cuh"
#include "common/device/grid.hpp"
#include "common/device/ptx.cuh"

namespace day18 {

constexpr int kRingBlock = 128;  // threads of a block

// Sizes for keys, and for pairs. Both take 32 KiB of shared memory for the rings.
template <bool kPairs>
struct RingShape {
    // Elements per thread and tile. Odd: stores spread over all banks.
    static constexpr int kShare = kPairs ? 7 : 15;
    static constexpr unsigned kTile = kRingBlock * kShare;    // elements of the output
    static constexpr unsigned kSlots = kPairs ? 2048 : 4096;  // of a ring
    static_assert(kSlots >= 2 * kTile, "a ring has a tile's elements, and those being loaded");
};

// The slot of element i of an array. Where the address of the element is a multiple of 16 bytes,
// that of its slot is, too: a copy of 16 bytes needs both.
template <unsigned kSlots>
__device__ unsigned slot_of(const std::int32_t* array, std::size_t i) {
    const auto shift = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(array) / sizeof(Key));
    return (shift + static_cast<unsigned>(i)) % kSlots;
}

// All threads of the block issue the loads of elements `begin` to `end`, 16 bytes each. At the
// edges, where less than 16 bytes are needed, 4 bytes each.
template <unsigned kSlots>
__device__ void load_async(const std::int32_t* array, std::size_t begin, std::size_t end,
                           std::int32_t* ring) {
    constexpr unsigned kChunk = 4;  // elements
    const unsigned before = slot_of<kSlots>(array, begin) % kChunk;
    const unsigned size = before + static_cast<unsigned>(end - begin);
    // x counts elements from the multiple of 16 bytes at or before element `begin`.
    for (unsigned x = threadIdx.x * kChunk; x < size; x += kRingBlock * kChunk) {
        if (x >= before && x + kChunk <= size) {
            const std::size_t i = begin + x - before;
            course::ptx::cp_async_16(ring + slot_of<kSlots>(array, i), array + i);
            continue;
        }
        for (unsigned y = x; y < x + kChunk; ++y) {
            if (y < before || y >= size) continue;
            const std::size_t i = begin + y - before;
            course::ptx::cp_async_4(ring + slot_of<kSlots>(array, i), array + i);
        }
    }
}

// A part of an array in a ring: its element 0 is in slot `first`.
template <unsigned kSlots>
struct Window {
    std::int32_t* slots;
    unsigned first;
    __device__ std::int32_t& operator[](unsigned i) const { return slots[(first + i) % kSlots]; }
};

// Idea: few blocks, as many as the GPU can run at once, and each merges a long part, tile by tile,
// from rings as in circular_buffer. A ring has room for two tiles. The co-rank of the tile's end
// gives the number of elements of a and of b that the tile uses. Asynchronous copies load as many
// new ones while this tile is merged.
// Cost removed: the latency of loads, and the kernel that computes splits. Only the start and the
// end of a block's part are searched for in global memory, by a warp each; all other searches are
// in shared memory.
// Still limits it: instructions (counters at 2^28: issue slots 72 % busy, DRAM 44 %). All threads
// of a block search, merge or store at the same time. For short arrays also the search, and the
// first tile's loads.
//
// The merged tile is staged in the slots of the elements that it has used.
template <bool kPairs>
__global__ void __launch_bounds__(kRingBlock)
    overlapped(const Key* a, const Value* values_a, std::size_t m, const Key* b, const Value* values_b,
               std::size_t n, Key* out, Value* values_out) {
    constexpr int kShare = RingShape<kPairs>::kShare;
    constexpr unsigned kTile = RingShape<kPairs>::kTile;
    constexpr unsigned kSlots = RingShape<kPairs>::kSlots;
    alignas(16) __shared__ Key ring_a[kSlots];
    alignas(16) __shared__ Key ring_b[kSlots];
    alignas(16) __shared__ Value ring_values_a[kPairs ? kSlots : 4];
    alignas(16) __shared__ Value ring_values_b[kPairs ? kSlots : 4];
    // Where the block's part of a starts and ends.
    __shared__ std::size_t of_block[2];
    __shared__ unsigned splits[kRingBlock + 1];  // splits[t]: where thread t starts in the tile's a

    // The block's part of the output: k to k_end, whole tiles except for the last one.
    const std::size_t tiles = (m + n + kTile - 1) / kTile;
    std::size_t k = tiles * blockIdx.x / gridDim.x * kTile;
    const std::size_t k_end = smaller(tiles * (blockIdx.x + 1) / gridDim.x * kTile, m + n);
    const unsigned warp = threadIdx.x / kWarpSize;
    if (warp < 2) {
        const std::size_t found = co_rank_by_warp(warp == 0 ? k : k_end, a, m, b, n);
        if (threadIdx.x % kWarpSize == 0) of_block[warp] = found;
    }
    if (threadIdx.x == 0) splits[0] = 0;
    __syncthreads();
    std::size_t i = of_block[0];
    std::size_t j = k - i;
    const std::size_t i_end = of_block[1];
    const std::size_t j_end = k_end - i_end;

    // Issues the loads of `count` elements from `begin` on, or of as many as are left in the
    // block's part.
    const auto load_a = [&](std::size_t begin, std::size_t count) {
        const std::size_t end = smaller(begin + count, i_end);
        if (begin >= end) return;
        load_async<kSlots>(a, begin, end, ring_a);
        if constexpr (kPairs) load_async<kSlots>(values_a, begin, end, ring_values_a);
    };
    const auto load_b = [&](std::size_t begin, std::size_t count) {
        const std::size_t end = smaller(begin + count, j_end);
        if (begin >= end) return;
        load_async<kSlots>(b, begin, end, ring_b);
        if constexpr (kPairs) load_async<kSlots>(values_b, begin, end, ring_values_b);
    };
    load_a(i, kTile);
    load_b(j, kTile);
    course::ptx::cp_async_commit();

    while (k < k_end) {
        const auto size = static_cast<unsigned>(smaller<std::size_t>(k_end - k, kTile));
        const auto size_a = static_cast<unsigned>(smaller<std::size_t>(i_end - i, kTile));
        const auto size_b = static_cast<unsigned>(smaller<std::size_t>(j_end - j, kTile));
        const Window<kSlots> tile_a{ring_a, slot_of<kSlots>(a, i)};
        const Window<kSlots> tile_b{ring_b, slot_of<kSlots>(b, j)};
        const Window<kSlots> tile_values_a{ring_values_a, slot_of<kSlots>(values_a, i)};
        const Window<kSlots> tile_values_b{ring_values_b, slot_of<kSlots>(values_b, j)};

        // A thread's own copies have arrived, and after the barrier those of all threads.
        course::ptx::cp_async_wait<0>();
        __syncthreads();
        // Each thread searches for the end of its share, which is the start of the next thread's.
        const unsigned end = smaller((threadIdx.x + 1) * kShare, size);
        splits[threadIdx.x + 1] = co_rank(end, tile_a, size_a, tile_b, size_b);
        __syncthreads();

        // The rings have a tile's worth of each array from i and j on. The next tile starts used_a
        // and used_b further on, so as many elements are missing at its end. A ring has slots for
        // two tiles, so the copies overwrite nothing that this tile reads.
        const unsigned used_a = splits[kRingBlock];
        const unsigned used_b = size - used_a;
        load_a(i + kTile, used_a);
        load_b(j + kTile, used_b);
        course::ptx::cp_async_commit();

        // The threads merge while these copies are in flight.
        const unsigned first = smaller(threadIdx.x * kShare, size);
        unsigned at_a = splits[threadIdx.x];
        unsigned at_b = first - at_a;
        Key next_a = at_a < size_a ? tile_a[at_a] : 0;
        Key next_b = at_b < size_b ? tile_b[at_b] : 0;
        Key merged[kShare];
        Value merged_values[kShare];
#pragma unroll
        for (int x = 0; x < kShare; ++x) {
            const bool from_a = at_b >= size_b || (at_a < size_a && next_a <= next_b);
            merged[x] = from_a ? next_a : next_b;
            if constexpr (kPairs) {
                if (first + x < size) merged_values[x] = from_a ? tile_values_a[at_a] : tile_values_b[at_b];
            }
            if (from_a) {
                if (++at_a < size_a) next_a = tile_a[at_a];
            } else {
                if (++at_b < size_b) next_b = tile_b[at_b];
            }
        }

        // All threads have read what they merge. Its slots hold the merged tile: used_a elements
        // where those of a were, the rest where those of b were.
        __syncthreads();
#pragma unroll
        for (int x = 0; x < kShare; ++x) {
            const unsigned place = first + x;
            if (place >= size) break;
            (place < used_a ? tile_a[place] : tile_b[place - used_a]) = merged[x];
            if constexpr (kPairs)
                (place < used_a ? tile_values_a[place] : tile_values_b[place - used_a]) = merged_values[x];
        }
        __syncthreads();
#pragma unroll
        for (int x = 0; x < kShare; ++x) {
            const unsigned place = x * kRingBlock + threadIdx.x;
            if (place >= size) break;
            out[k + place] = place < used_a ? tile_a[place] : tile_b[place - used_a];
            if constexpr (kPairs)
                values_out[k + place] = place < used_a ? tile_values_a[place] : tile_values_b[place - used_a];
        }
        i += used_a;
        j += used_b;
        k += size;
    }
}

// Without pairs, there are no values: null pointers.
template <bool kPairs>
void launch_overlapped(const Key* a, const Value* values_a, std::size_t m, const Key* b,
                       const Value* values_b, std::size_t n, Key* out, Value* values_out,
                       cudaStream_t stream) {
    const std::size_t tiles = course::ceil_div<std::size_t>(m + n, RingShape<kPairs>::kTile);
    const std::size_t resident = course::resident_blocks(overlapped<kPairs>, kRingBlock);
    const auto grid = static_cast<unsigned>(std::min(tiles, resident));
    overlapped<kPairs><<<grid, kRingBlock, 0, stream>>>(a, values_a, m, b, values_b, n, out, values_out);
}

}  // namespace day18
