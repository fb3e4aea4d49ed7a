// Day 17, beyond: tiles of 4,096 elements instead of one element per thread. What is kept of a tile
// is staged in shared memory, in order.
//
//   version             what is new                                  what limits it
//   coarsened           tiles of 4,096 elements, staged in order     every element is read twice
//   remove_duplicates   keeps the first of each run                  every element is read twice
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "filter.cuh"

namespace day17 {

constexpr int kEach = 16;                       // elements of a thread
constexpr int kWarpTile = kEach * kWarpSize;    // 512 consecutive elements of a warp
constexpr unsigned kTile = kWarps * kWarpTile;  // 4,096 elements of a tile

// The last tile may be shorter.
__device__ inline unsigned size_of_tile(std::size_t n, std::size_t first) {
    return n - first < kTile ? static_cast<unsigned>(n - first) : kTile;
}

// A thread has elements first_of_thread() + 32 k of the tile, so the loads of a warp are coalesced.
__device__ inline unsigned first_of_thread() {
    return threadIdx.x / kWarpSize * kWarpTile + threadIdx.x % kWarpSize;
}

__device__ inline void load_values(const std::int32_t* in, std::size_t first, unsigned size,
                                   std::int32_t (&values)[kEach]) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const unsigned i = first_of_thread() + k * kWarpSize;
        values[k] = i < size ? in[first + i] : 0;
    }
}

// The condition, for a tile of `size` elements: bit k of flags() is set if values[k] is kept.
struct TileBelow {
    std::int32_t threshold;
    __device__ unsigned flags(const std::int32_t (&values)[kEach], const std::int32_t* /*in*/,
                              std::size_t /*first*/, unsigned size) const {
        unsigned kept = 0;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            const unsigned i = first_of_thread() + k * kWarpSize;
            if (i < size && values[k] < threshold) kept |= 1U << k;
        }
        return kept;
    }
};

// How many elements of the tile are kept by the warps before this one. `total` gets the number kept
// by all warps.
__device__ inline unsigned kept_before_warp(unsigned flags, unsigned& total) {
    __shared__ unsigned of_warp[kWarps];
    unsigned kept = number_of(flags);
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
        kept += __shfl_xor_sync(kWholeWarp, kept, distance);
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    if (threadIdx.x % kWarpSize == 0) of_warp[warp] = kept;
    __syncthreads();
    unsigned before = 0;
    total = 0;
    for (int w = 0; w < kWarps; ++w) {
        if (w == warp) before = total;
        total += of_warp[w];
    }
    return before;
}

// Writes what the warp keeps to staged[place] and up, in order. For each k the lanes write adjacent
// words, so there are no bank conflicts.
__device__ inline void stage_kept(const std::int32_t (&values)[kEach], unsigned flags, unsigned place,
                                  std::int32_t* staged) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const bool kept = (flags >> k & 1) != 0;
        const unsigned votes = __ballot_sync(kWholeWarp, kept);
        if (kept) staged[place + votes_before(votes)] = values[k];
        place += number_of(votes);
    }
}

// Copies `size` words to out[place] and up. Warps start at multiples of 32 words, so that only the
// first and the last sector are written partially.
__device__ inline void store_staged(const std::int32_t* staged, unsigned size, std::int32_t* out,
                                    Count place) {
    const int shift = static_cast<int>(place % kWarpSize);
    for (int k = static_cast<int>(threadIdx.x) - shift; k < static_cast<int>(size); k += kBlock)
        if (k >= 0) out[place + k] = staged[k];
}

// First kernel of coarsened and of remove_duplicates: how many elements does each tile keep? The
// second one is scan_counts.
template <class Keep>
__global__ void __launch_bounds__(kBlock)
    count_tiles(const std::int32_t* in, std::size_t n, Keep keep, Count* counts) {
    const std::size_t first = std::size_t{blockIdx.x} * kTile;
    const unsigned size = size_of_tile(n, first);
    std::int32_t values[kEach];
    load_values(in, first, size, values);
    const unsigned flags = keep.flags(values, in, first, size);
    unsigned total;
    kept_before_warp(flags, total);
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

// Idea: a thread has 16 elements, and what a tile keeps is staged in shared memory. This is the
// third kernel, after count_tiles and scan_counts.
// Cost removed: 15 of 16 counts, and most scans: ballots give the places within a warp. Stores are
// coalesced, however few elements are kept.
// Still limits it: memory, because every element is read twice. Counters at 2^28: DRAM 96 % busy in
// count_tiles, 91 % here; scan_counts, in one block, takes 14 % of the time. At 2^24, where the
// second read finds a part in L2: L2 84 % busy here.
template <class Keep>
__global__ void __launch_bounds__(kBlock)
    scatter_tiles(const std::int32_t* in, std::size_t n, Keep keep, const Count* begins, std::int32_t* out) {
    __shared__ std::int32_t staged[kTile];
    const std::size_t first = std::size_t{blockIdx.x} * kTile;
    const unsigned size = size_of_tile(n, first);
    std::int32_t values[kEach];
    load_values(in, first, size, values);
    const unsigned flags = keep.flags(values, in, first, size);
    unsigned total;
    const unsigned place = kept_before_warp(flags, total);
    stage_kept(values, flags, place, staged);
    __syncthreads();
    store_staged(staged, total, out, begins[blockIdx.x]);
}

// The three kernels, on tiles: counts, their scan, the elements. `counts` has an element for each
// tile.
template <class Keep>
void launch_tiles(const std::int32_t* in, std::size_t n, Keep keep, std::int32_t* out, Count* counts,
                  Count* count, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(course::ceil_div<std::size_t>(n, kTile), 1);
    count_tiles<Keep><<<grid, kBlock, 0, stream>>>(in, n, keep, counts);
    scan_counts<<<1, kScanBlock, 0, stream>>>(counts, grid, count);
    scatter_tiles<Keep><<<grid, kBlock, 0, stream>>>(in, n, keep, counts, out);
}

inline void launch_coarsened(const std::int32_t* in, std::size_t n, std::int32_t threshold, std::int32_t* out,
                             Count* counts, Count* count, cudaStream_t stream) {
    launch_tiles(in, n, TileBelow{threshold}, out, counts, count, stream);
}

// Idea: the first element of each run of equal ones differs from its left neighbour, which another
// lane has. remove_duplicates uses the same kernels with these flags.
// Cost removed: a second load for each element, of in[i - 1].
// Still limits it: every element is read twice.
//
// For each k, a lane reads values[k] of the lane to its left. The left neighbour of lane 0's
// values[k] is the last lane's values[k - 1], so the last lane passes that one.
struct TileFirstOfRun {
    __device__ unsigned flags(const std::int32_t (&values)[kEach], const std::int32_t* in, std::size_t first,
                              unsigned size) const {
        const unsigned lane = threadIdx.x % kWarpSize;
        const bool is_last_lane = lane == kWarpSize - 1;
        const std::size_t first_of_warp = first + first_of_thread() - lane;
        std::int32_t last = 0;  // in the last lane: the left neighbour of the first lane's value
        if (is_last_lane && first_of_warp > 0 && first_of_warp < first + size) last = in[first_of_warp - 1];
        unsigned kept = 0;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            const std::int32_t given = is_last_lane ? last : values[k];
            const std::int32_t left = __shfl_sync(kWholeWarp, given, (lane + kWarpSize - 1) % kWarpSize);
            last = values[k];
            const unsigned i = first_of_thread() + k * kWarpSize;
            if (i < size && (first + i == 0 || values[k] != left)) kept |= 1U << k;
        }
        return kept;
    }
};

inline void launch_remove_duplicates(const std::int32_t* in, std::size_t n, std::int32_t* out, Count* counts,
                                     Count* count, cudaStream_t stream) {
    launch_tiles(in, n, TileFirstOfRun{}, out, counts, count, stream);
}

}  // namespace day17
