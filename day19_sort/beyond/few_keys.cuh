// Day 19, beyond: few keys in one launch. A block sorts whole arrays or segments in shared memory.
#pragma once

#include "beyond/segments.cuh"

namespace day19 {

constexpr int kFewBlock = 1024;
constexpr int kMostFewEach = 8;  // keys of a thread
constexpr std::size_t kMostFewKeys = std::size_t{kFewBlock} * kMostFewEach;
// A warp examines up to 32 segments at once, one per lane, and its block then sorts those of more
// than 32 keys in turn. More blocks than this run at the same time on no GPU, so only from there on
// does a block take several.
constexpr std::size_t kFewBlocks = 256;

// Each key is compared with the one whose place differs in the bits of `mask`. The smaller one goes
// to the smaller place. Places from `size` on count as the largest code, so they never change.
template <int kEach>
__device__ void compare_and_exchange(std::uint32_t (&keys)[kEach], int size, int mask, std::uint32_t* tile) {
    const int thread = static_cast<int>(threadIdx.x);
    std::uint32_t theirs[kEach];
    if (mask < kWarpSize) {  // the partner is a lane of the same warp
#pragma unroll
        for (int k = 0; k < kEach; ++k)
            theirs[k] = k * kFewBlock < size ? __shfl_xor_sync(kWholeWarp, keys[k], mask) : ~0U;
    } else {
#pragma unroll
        for (int k = 0; k < kEach; ++k)
            if (k * kFewBlock + thread < size) tile[k * kFewBlock + thread] = keys[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            const int partner = (k * kFewBlock + thread) ^ mask;
            theirs[k] = k * kFewBlock < size && partner < size ? tile[partner] : ~0U;
        }
        __syncthreads();  // all threads have read: safe to overwrite
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const int place = k * kFewBlock + thread;
        if (place < size)
            keys[k] = place < (place ^ mask) ? min(keys[k], theirs[k]) : max(keys[k], theirs[k]);
    }
}

// The block sorts `size` keys by bitonic merges of any length: the first step of a merge compares a
// run with the next one reversed, so all steps put the smaller key first.
template <int kEach>
__device__ void sort_by_block(const std::uint32_t* in, std::uint32_t* out, int size,
                              const KeyCode<std::uint32_t>& code, std::uint32_t* tile) {
    const int thread = static_cast<int>(threadIdx.x);
    std::uint32_t keys[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const int place = k * kFewBlock + thread;
        keys[k] = place < size ? code.encode(in[place]) : ~0U;
    }
    for (int run = 1; run < size; run *= 2) {
        compare_and_exchange(keys, size, 2 * run - 1, tile);
        for (int distance = run / 2; distance > 0; distance /= 2)
            compare_and_exchange(keys, size, distance, tile);
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const int place = k * kFewBlock + thread;
        if (place < size) out[place] = code.decode(keys[k]);
    }
}

// Idea: so few keys that no segment can be too long for a block. One kernel sorts segments of any
// length, the tiny ones by the block's first warp. Equal keys have equal bits, so the sort need not
// be stable.
// Cost removed: the lists and their counts, and a launch for each kind of segment.
// Still limits it: barriers, two for most steps of a merge.
template <int kEach>
__global__ void __launch_bounds__(kFewBlock) sort_few_segments(Segments segments, unsigned of_block) {
    __shared__ std::uint32_t tile[kFewBlock * kEach];
    const unsigned lane = threadIdx.x % kWarpSize;
    const std::size_t s = std::size_t{blockIdx.x} * of_block + lane;
    // Each warp examines the same segments, so that all threads agree on those of the block.
    const bool is_ours = lane < of_block && s < segments.count;
    const std::size_t first = is_ours ? segments.offsets[s] : 0;
    const int length = is_ours ? static_cast<int>(segments.offsets[s + 1] - first) : 0;
    const bool is_tiny = length <= static_cast<int>(kTinySegment);
    if (threadIdx.x < kWarpSize) sort_tiny_segments_of_lanes(segments, first, is_tiny ? length : 0);
    for (unsigned rest = __ballot_sync(kWholeWarp, !is_tiny); rest != 0; rest &= rest - 1) {
        const int owner = __ffs(static_cast<int>(rest)) - 1;
        const std::size_t its_first = __shfl_sync(kWholeWarp, first, owner);
        const int size = __shfl_sync(kWholeWarp, length, owner);
        sort_by_block<kEach>(segments.in + its_first, segments.out + its_first, size, segments.code, tile);
    }
}

// n: the number of all keys, at most kMostFewKeys.
inline void launch_sort_few_segments(const Segments& segments, std::size_t n, cudaStream_t stream) {
    const auto of_block = static_cast<unsigned>(
        std::clamp<std::size_t>(course::ceil_div<std::size_t>(segments.count, kFewBlocks), 1, kWarpSize));
    const auto grid = static_cast<unsigned>(course::ceil_div<std::size_t>(segments.count, of_block));
    if (n <= kFewBlock) {
        sort_few_segments<1><<<grid, kFewBlock, 0, stream>>>(segments, of_block);
    } else if (n <= 2 * kFewBlock) {
        sort_few_segments<2><<<grid, kFewBlock, 0, stream>>>(segments, of_block);
    } else if (n <= 4 * kFewBlock) {
        sort_few_segments<4><<<grid, kFewBlock, 0, stream>>>(segments, of_block);
    } else {
        sort_few_segments<kMostFewEach><<<grid, kFewBlock, 0, stream>>>(segments, of_block);
    }
}

}  // namespace day19
