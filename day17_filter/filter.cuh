// Day 17: filter, or stream compaction. out holds what is kept of in, without gaps.    PMPP chapter 12 (5th edition)
//
//   version             what is new                                  what limits it
//   atomic              an atomic counter gives each its place       atomics on one address; any order
//   warp_aggregated     one atomic for all that a warp keeps         atomics on one address; any order
//   privatised          a block counts in shared memory first        latency; any order
//   stable              places come from a scan: in input order      one block scans n / 256 counts
//
// A filter must read n elements and write those that it keeps. The difficulty is the place of each
// in `out`, because it depends on how many elements before it are kept. Each kernel is followed by
// its launch. beyond/ has tiles of 4,096 elements, a single pass over memory, and other conditions.
//
//   ./course run day17                                  every version, verified and timed
//   ./course run day17 --program                        program.cu: one filter, from main() to the result
//   ./course inspect day17 --only privatised            atomics and sectors, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"

namespace day17 {

constexpr int kBlock = 256;  // threads of a block
constexpr int kWarpSize = 32;
constexpr int kWarps = kBlock / kWarpSize;
constexpr unsigned kWholeWarp = 0xffffffff;

using Count = unsigned long long;  // a number of elements; atomicAdd has this 64-bit type

// What the filter keeps.
struct Below {
    std::int32_t threshold;
    __device__ bool operator()(std::int32_t value) const { return value < threshold; }
};

// Idea: atomicAdd returns the old value of the counter, a place that no other thread gets.
// Cost removed: the loop of the CPU, whose next place depends on all elements before.
// Still limits it: all atomics go to one address (counters: a slice of L2, day 12, adds 71 % of the
// time, DRAM is less than 8 % busy). Elements are written in the order of the atomics, which may
// differ from run to run.
__global__ void atomic(const std::int32_t* in, std::size_t n, Below keep, std::int32_t* out, Count* count) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < n && keep(in[i])) out[atomicAdd(count, Count{1})] = in[i];
}

inline void launch_atomic(const std::int32_t* in, std::size_t n, std::int32_t threshold, std::int32_t* out,
                          Count* count, cudaStream_t stream) {
    cudaMemsetAsync(count, 0, sizeof(Count), stream);  // the first place is 0
    atomic<<<course::blocks_for(n, kBlock), kBlock, 0, stream>>>(in, n, Below{threshold}, out, count);
}

// How many of the lanes before this one have voted yes.
__device__ inline unsigned votes_before(unsigned votes) {
    const unsigned lane = threadIdx.x % kWarpSize;
    return static_cast<unsigned>(__popc(static_cast<int>(votes & ((1U << lane) - 1))));
}

__device__ inline unsigned number_of(unsigned votes) {
    return static_cast<unsigned>(__popc(static_cast<int>(votes)));
}

// Idea: the lanes vote. One of them adds the number of votes; a lane's own place follows from the
// votes before its own.
// Cost removed: up to 31 of 32 atomics (nvcc does the same to the kernel above). The elements of a
// warp go to adjacent places, so stores are coalesced.
// Still limits it: an atomic for every warp, all at one address (counters as for the kernel above),
// and the order of the warps.
__global__ void warp_aggregated(const std::int32_t* in, std::size_t n, Below keep, std::int32_t* out,
                                Count* count) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    const bool kept = i < n && keep(in[i]);
    const unsigned votes = __ballot_sync(kWholeWarp, kept);
    Count first = 0;  // the place of the first element that the warp keeps
    if (threadIdx.x % kWarpSize == 0 && votes != 0) first = atomicAdd(count, Count{number_of(votes)});
    first = __shfl_sync(kWholeWarp, first, 0);
    if (kept) out[first + votes_before(votes)] = in[i];
}

inline void launch_warp_aggregated(const std::int32_t* in, std::size_t n, std::int32_t threshold,
                                   std::int32_t* out, Count* count, cudaStream_t stream) {
    cudaMemsetAsync(count, 0, sizeof(Count), stream);
    warp_aggregated<<<course::blocks_for(n, kBlock), kBlock, 0, stream>>>(in, n, Below{threshold}, out,
                                                                          count);
}

// Idea: the warps of a block add to a counter of their own, in shared memory. One thread then adds
// the block's count to the counter in global memory.
// Cost removed: seven of eight atomics in global memory.
// Still limits it: latency, and the arbitrary order. Each block waits for its load, its atomic and
// three barriers, one after the other. Counters at 2^28 elements: a slice of L2 adds 50 % of the
// time (above: 71 %), and no other unit is above 51 %.
__global__ void privatised(const std::int32_t* in, std::size_t n, Below keep, std::int32_t* out,
                           Count* count) {
    __shared__ unsigned kept_by_block;
    __shared__ Count first;  // the place of the first element that the block keeps
    if (threadIdx.x == 0) kept_by_block = 0;
    __syncthreads();
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    const bool kept = i < n && keep(in[i]);
    const unsigned votes = __ballot_sync(kWholeWarp, kept);
    unsigned place = 0;  // of the warp's first one, among those of the block
    if (threadIdx.x % kWarpSize == 0 && votes != 0) place = atomicAdd(&kept_by_block, number_of(votes));
    place = __shfl_sync(kWholeWarp, place, 0) + votes_before(votes);
    __syncthreads();
    if (threadIdx.x == 0) first = atomicAdd(count, Count{kept_by_block});
    __syncthreads();
    if (kept) out[first + place] = in[i];
}

inline void launch_privatised(const std::int32_t* in, std::size_t n, std::int32_t threshold,
                              std::int32_t* out, Count* count, cudaStream_t stream) {
    cudaMemsetAsync(count, 0, sizeof(Count), stream);
    privatised<<<course::blocks_for(n, kBlock), kBlock, 0, stream>>>(in, n, Below{threshold}, out, count);
}

// --- Stable: three kernels -----------------------------------------------------------------------

// First kernel: how many elements does each block keep?
__global__ void count_kept(const std::int32_t* in, std::size_t n, Below keep, Count* counts) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    const int kept_by_block = __syncthreads_count(i < n && keep(in[i]));
    if (threadIdx.x == 0) counts[blockIdx.x] = static_cast<Count>(kept_by_block);
}

// The sum of the values of all threads before this one, as in day 16. `total` gets the sum of all
// threads' values. Two calls need a barrier in between.
template <int kThreads, class T>
__device__ T sum_before(T value, T& total) {
    __shared__ T of_warp[kThreads / kWarpSize];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    T inclusive = value;
    for (int stride = 1; stride < kWarpSize; stride *= 2) {
        const T left = __shfl_up_sync(kWholeWarp, inclusive, stride);
        if (lane >= stride) inclusive += left;
    }
    if (lane == kWarpSize - 1) of_warp[warp] = inclusive;
    __syncthreads();
    T of_warps_before = 0;
    total = 0;
    for (int w = 0; w < kThreads / kWarpSize; ++w) {
        if (w == warp) of_warps_before = total;
        total += of_warp[w];
    }
    return of_warps_before + inclusive - value;
}

constexpr int kScanBlock = 1024;

// Second kernel, one block: each count becomes the sum of all counts before it, which is where the
// elements of its block start in `out`.
__global__ void __launch_bounds__(kScanBlock) scan_counts(Count* counts, std::size_t n, Count* count) {
    Count before = 0;  // of these 1,024 counts
    for (std::size_t first = 0; first < n; first += kScanBlock) {
        const std::size_t i = first + threadIdx.x;
        const Count mine = i < n ? counts[i] : 0;
        Count total;
        const Count here = sum_before<kScanBlock>(mine, total);
        if (i < n) counts[i] = before + here;
        before += total;
        __syncthreads();  // before the next call of sum_before
    }
    if (threadIdx.x == 0) *count = before;
}

// Idea: a scan instead of a counter: the place of an element is the number of elements kept before
// it. The blocks count (count_kept), one block scans their counts (scan_counts), and this kernel
// scans the flags of each block.
// Cost removed: the atomics, and with them the arbitrary order. This filter is stable.
// Still limits it: one block scans n / 256 counts, 45 % of the time at 2^28 elements (counters; its
// SM is busy, ALU 83 %, and all others are idle). The other two kernels, with one element per
// thread, are latency-bound: DRAM 27 to 34 % busy.
__global__ void scatter_kept(const std::int32_t* in, std::size_t n, Below keep, const Count* begins,
                             std::int32_t* out) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    const bool kept = i < n && keep(in[i]);
    unsigned total;
    const unsigned place = sum_before<kBlock>(unsigned{kept}, total);
    if (kept) out[begins[blockIdx.x] + place] = in[i];
}

// `counts` has an element for each block. The first kernel writes the blocks' counts, the second
// their scan.
inline void launch_stable(const std::int32_t* in, std::size_t n, std::int32_t threshold, std::int32_t* out,
                          Count* counts, Count* count, cudaStream_t stream) {
    const Below keep{threshold};
    const unsigned grid = course::blocks_for(n, kBlock);
    count_kept<<<grid, kBlock, 0, stream>>>(in, n, keep, counts);
    scan_counts<<<1, kScanBlock, 0, stream>>>(counts, grid, count);
    scatter_kept<<<grid, kBlock, 0, stream>>>(in, n, keep, counts, out);
}

}  // namespace day17
