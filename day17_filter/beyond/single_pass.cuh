// Day 17, beyond: one pass over memory. Each element is read once, each kept one written once.
//
//   version             what is new                                  what limits it
//   single_pass         look-back: elements are read once            a block that looks back loads nothing
//   single_pass_unique  the same, for the first of each run          the same
//   partition           the others go to the end, in reverse order   the same; every element is written
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "filter.cuh"
#include "tiles.cuh"
#include "words.cuh"

namespace day17 {

// --- Look-back -----------------------------------------------------------------------------------

// How many elements the tiles before ticket.tile keep, computed by one warp; all its lanes get it.
// Lane l reads the word of tile ticket.tile - 1 - l. Sums are added up to the nearest prefix;
// without one the warp goes on 32 tiles further left. D. Merrill and M. Garland, "Single-pass
// parallel prefix scan with decoupled look-back", NVIDIA, 2016.
__device__ inline Count look_back(const Word* words, Ticket ticket) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    Count sum = 0;
    for (long long nearest = static_cast<long long>(ticket.tile) - 1;; nearest -= kWarpSize) {
        const long long mine = nearest - lane;
        Word word = make_word(ticket.launch, kPrefix, 0);  // before the first tile
        do {
            if (mine >= 0) word = load_relaxed(&words[mine]);
        } while (__any_sync(kWholeWarp, state_of(word, ticket.launch) == kEmpty));
        const unsigned prefixes = __ballot_sync(kWholeWarp, state_of(word, ticket.launch) == kPrefix);
        const int last = prefixes != 0 ? __ffs(static_cast<int>(prefixes)) - 1 : kWarpSize - 1;
        Count part = lane <= last ? count_of(word) : 0;
        for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
            part += __shfl_xor_sync(kWholeWarp, part, distance);
        sum += part;
        if (prefixes != 0) return sum;
    }
}

// Looks back, publishes the prefix, and returns how many elements the tiles before keep. The last
// tile's prefix is the count of all. The first warp calls it.
__device__ inline Count publish_prefix(Word* words, Ticket ticket, unsigned total, Count* count) {
    const Count before = look_back(words, ticket);
    if (threadIdx.x == 0) {
        store_relaxed(&words[ticket.tile], make_word(ticket.launch, kPrefix, before + total));
        if (ticket.tile == gridDim.x - 1) *count = before + total;
    }
    return before;
}

// --- Kernels -------------------------------------------------------------------------------------

// Idea: a tile publishes how many elements it keeps, then looks back to find how many the tiles
// before it keep.
// Cost removed: the second read of every element, and two of three launches.
// Still limits it: while a block looks back, it has no loads in flight. At 2^28 elements the
// version reaches 67 to 79 % of the memory bandwidth of an H100. Counters of an H200: 61 % of the
// time of its warps at barriers, DRAM 56 % busy.
template <class Keep>
__global__ void __launch_bounds__(kBlock)
    single_pass(const std::int32_t* in, std::size_t n, Keep keep, std::int32_t* out, Count* count,
                Progress* progress, Word* words) {
    __shared__ std::int32_t staged[kTile];
    __shared__ Ticket drawn;
    __shared__ Count before_tile;
    if (threadIdx.x == 0) drawn = draw_ticket(progress);
    __syncthreads();
    const Ticket ticket = drawn;

    const std::size_t first = std::size_t{ticket.tile} * kTile;
    const unsigned size = size_of_tile(n, first);
    std::int32_t values[kEach];
    load_values(in, first, size, values);
    const unsigned flags = keep.flags(values, in, first, size);
    unsigned total;
    const unsigned place = kept_before_warp(flags, total);
    if (threadIdx.x == 0) store_relaxed(&words[ticket.tile], make_word(ticket.launch, kSum, total));
    stage_kept(values, flags, place, staged);
    if (threadIdx.x < kWarpSize) {
        const Count found = publish_prefix(words, ticket, total, count);
        if (threadIdx.x == 0) before_tile = found;
    }
    __syncthreads();
    store_staged(staged, total, out, before_tile);
    if (threadIdx.x == 0) finish(progress, words, ticket.launch);
}

// A block for each tile. `words` has an element for each tile.
template <class Keep>
void launch_single_pass(const std::int32_t* in, std::size_t n, Keep keep, std::int32_t* out, Count* count,
                        Progress* progress, Word* words, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(course::ceil_div<std::size_t>(n, kTile), 1);
    single_pass<Keep><<<grid, kBlock, 0, stream>>>(in, n, keep, out, count, progress, words);
}

// Like stage_kept. The other elements fill the end of the tile, the last of them first. Before
// element i there are i - kept_before of them.
__device__ inline void stage_both(const std::int32_t (&values)[kEach], unsigned flags, unsigned place,
                                  unsigned size, std::int32_t* staged) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const bool kept = (flags >> k & 1) != 0;
        const unsigned votes = __ballot_sync(kWholeWarp, kept);
        const unsigned kept_before = place + votes_before(votes);
        const unsigned i = first_of_thread() + k * kWarpSize;
        if (kept) {
            staged[kept_before] = values[k];
        } else if (i < size) {
            staged[size - 1 - (i - kept_before)] = values[k];
        }
        place += number_of(votes);
    }
}

// Idea: what is not kept goes to the end of `out`, in reverse order. The number not kept before a
// tile is the number of elements minus the number kept, so there is no second look-back.
// Cost removed: a second filter, for the other elements.
// Still limits it: L2 (counters at 2^24, where half are kept: 64 % busy, DRAM 47 %), and barriers:
// a block that looks back has no loads in flight. At 2^28 elements the version reaches 75 to 76 %
// of the memory bandwidth of an H100.
__global__ void __launch_bounds__(kBlock)
    partition(const std::int32_t* in, std::size_t n, TileBelow keep, std::int32_t* out, Count* count,
              Progress* progress, Word* words) {
    __shared__ std::int32_t staged[kTile];
    __shared__ Ticket drawn;
    __shared__ Count before_tile;
    if (threadIdx.x == 0) drawn = draw_ticket(progress);
    __syncthreads();
    const Ticket ticket = drawn;

    const std::size_t first = std::size_t{ticket.tile} * kTile;
    const unsigned size = size_of_tile(n, first);
    std::int32_t values[kEach];
    load_values(in, first, size, values);
    const unsigned flags = keep.flags(values, in, first, size);
    unsigned total;
    const unsigned place = kept_before_warp(flags, total);
    if (threadIdx.x == 0) store_relaxed(&words[ticket.tile], make_word(ticket.launch, kSum, total));
    stage_both(values, flags, place, size, staged);
    if (threadIdx.x < kWarpSize) {
        const Count found = publish_prefix(words, ticket, total, count);
        if (threadIdx.x == 0) before_tile = found;
    }
    __syncthreads();
    store_staged(staged, total, out, before_tile);
    const unsigned others = size - total;
    const Count others_before = first - before_tile;
    store_staged(staged + total, others, out, n - others_before - others);
    if (threadIdx.x == 0) finish(progress, words, ticket.launch);
}

inline void launch_partition(const std::int32_t* in, std::size_t n, std::int32_t threshold, std::int32_t* out,
                             Count* count, Progress* progress, Word* words, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(course::ceil_div<std::size_t>(n, kTile), 1);
    partition<<<grid, kBlock, 0, stream>>>(in, n, TileBelow{threshold}, out, count, progress, words);
}

}  // namespace day17
