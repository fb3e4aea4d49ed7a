// Day 19: sort. The keys of in, in ascending order, become out.    PMPP chapter 13 (4th edition), 14 (5th edition)
//
//   version                what is new                                   what limits it
//   odd_even               (comparison.cuh) adjacent keys are swapped    n phases; one block
//   bitonic_block          (comparison.cuh) a network of distant pairs   one block
//   merge_sort             (comparison.cuh) sorted tiles are merged      log2(n / 2048) passes
//   radix_1bit             a stable split by each bit, by a scan         32 passes, 28 bytes a key in each
//   radix_1bit_coalesced   blocks split in shared memory first           32 passes, 12 bytes a key in each
//   radix_multibit         (multibit.cuh) 4 bits in a pass               short runs: 16 keys of a digit
//   radix_coarsened        (multibit.cuh) 15 keys per thread             8 passes, 12 bytes a key in each
//   radix_8bit             (onesweep.cuh) 8 bits in a pass, by votes     4 passes, 12 bytes a key in each
//   onesweep               (onesweep.cuh) a pass is one kernel           instructions and shared memory
//
// A radix sort does not compare keys. A pass sorts them by one of their digits. The first pass
// takes the lowest digit. Each pass must be stable: where the digits are equal, keys keep the order
// that the earlier passes gave them.
//
//   ./course run day19                                every version, verified and timed
//   ./course inspect day19 --only radix_1bit          sectors and bank conflicts, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace day19 {

using Key = std::uint32_t;

constexpr int kKeyBits = 32;
constexpr int kWarpSize = 32;
constexpr unsigned kWholeWarp = 0xffffffff;

constexpr int kBlock = 256;       // threads of a block
constexpr int kScanBlock = 1024;  // threads of a block that scans, and counts of a part

// --- One bit in a pass ---------------------------------------------------------------------------

__device__ inline unsigned bit_of(Key key, int bit) {
    return key >> bit & 1;
}

// First kernel of a pass: the bit of each key. The scan turns it into the number of ones before.
__global__ void bits_of_keys(const Key* in, std::size_t n, int bit, unsigned* ones) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < n) ones[i] = bit_of(in[i], bit);
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

// Second kernel of a pass: each block scans its part of the counts, 1,024 of them.
__global__ void __launch_bounds__(kScanBlock) scan_parts(unsigned* counts, std::size_t n, std::size_t* sums) {
    const std::size_t i = std::size_t{blockIdx.x} * kScanBlock + threadIdx.x;
    const unsigned mine = i < n ? counts[i] : 0;
    unsigned total;
    const unsigned before = sum_before<kScanBlock>(mine, total);
    if (i < n) counts[i] = before;
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Third kernel, one block: each sum becomes that of all parts before it. sums[parts] becomes the
// sum of all. Later kernels add: the scan of count i is counts[i] + sums[i / 1024].
__global__ void __launch_bounds__(kScanBlock) scan_sums(std::size_t* sums, std::size_t parts) {
    std::size_t before = 0;  // of these 1,024 parts
    for (std::size_t first = 0; first < parts; first += kScanBlock) {
        const std::size_t i = first + threadIdx.x;
        const std::size_t mine = i < parts ? sums[i] : 0;
        std::size_t total;
        const std::size_t here = sum_before<kScanBlock>(mine, total);
        if (i < parts) sums[i] = before + here;
        before += total;
        // The next call of sum_before overwrites its shared memory.
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[parts] = before;
}

__device__ inline std::size_t scanned(const unsigned* counts, const std::size_t* sums, std::size_t i) {
    return counts[i] + sums[i / kScanBlock];
}

// Idea: the keys whose bit is 0 come first, then those whose bit is 1, both in the order they had.
// A scan gives the number of ones before a key, and so the number of zeros before it: its place.
// Cost removed: all comparisons. 32 passes sort any number of keys.
// Still limits it: a pass is four kernels, which move 28 bytes a key. The 32 keys of a warp go to
// two places in memory, that of the zeros and that of the ones.
__global__ void scatter_by_bit(const Key* in, std::size_t n, int bit, const unsigned* ones,
                               const std::size_t* sums, Key* out) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i >= n) return;
    const Key key = in[i];
    const std::size_t ones_before = scanned(ones, sums, i);
    const std::size_t zeros = n - sums[(n - 1) / kScanBlock + 1];
    out[bit_of(key, bit) == 0 ? i - ones_before : zeros + ones_before] = key;
}

// --- One bit in a pass, sorted in the block first ------------------------------------------------

// The last block has fewer keys.
__device__ inline unsigned size_of_tile(std::size_t n, std::size_t first, unsigned tile) {
    return n - first < tile ? static_cast<unsigned>(n - first) : tile;
}

// How many keys of each block have bit 0, and how many have bit 1? All blocks' zeros come first in
// `counts`, then all blocks' ones, which is the order of the keys in `out`. So the scan of the
// counts gives the places where each block's zeros and ones start.
__global__ void __launch_bounds__(kBlock)
    count_bits(const Key* in, std::size_t n, int bit, unsigned* counts) {
    const std::size_t first = std::size_t{blockIdx.x} * kBlock;
    const std::size_t i = first + threadIdx.x;
    const auto ones = static_cast<unsigned>(__syncthreads_count(i < n && bit_of(in[i], bit) == 1));
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = size_of_tile(n, first, kBlock) - ones;
        counts[std::size_t{gridDim.x} + blockIdx.x] = ones;
    }
}

// The key of a thread without a key of its own. All its bits are 1, and the threads without a key
// are the last ones of the block. So a stable split leaves these keys at the end of the tile.
constexpr Key kNoKey = 0xffffffff;

// Splits the block's keys by a bit, stably. Returns the one at place t to thread t; the tile has
// them all. The next call may overwrite the tile, because its sum_before has a barrier, before
// which all threads have read the tile.
__device__ inline Key split_by_bit(Key key, int bit, Key* tile) {
    const unsigned is_one = bit_of(key, bit);
    unsigned ones;
    const unsigned ones_before = sum_before<kBlock>(is_one, ones);
    const unsigned zeros = kBlock - ones;
    tile[is_one == 0 ? threadIdx.x - ones_before : zeros + ones_before] = key;
    __syncthreads();
    return tile[threadIdx.x];
}

// Idea: the block splits its keys in shared memory, and only then stores them. Its zeros are now
// adjacent, and so are its ones.
// Cost removed: 16 of 28 bytes, because a count for each block replaces one for each key. Adjacent
// threads store to adjacent addresses, except where the zeros end and the ones start.
// Still limits it: 32 passes.
__global__ void __launch_bounds__(kBlock)
    scatter_split_tiles(const Key* in, std::size_t n, int bit, const unsigned* counts,
                        const std::size_t* sums, Key* out) {
    __shared__ Key tile[kBlock];
    const std::size_t first = std::size_t{blockIdx.x} * kBlock;
    const unsigned size = size_of_tile(n, first, kBlock);
    const unsigned t = threadIdx.x;
    const Key key = split_by_bit(t < size ? in[first + t] : kNoKey, bit, tile);
    const auto zeros = static_cast<unsigned>(__syncthreads_count(bit_of(key, bit) == 0));
    if (t >= size) return;
    if (bit_of(key, bit) == 0) {
        out[scanned(counts, sums, blockIdx.x) + t] = key;
    } else {
        out[scanned(counts, sums, std::size_t{gridDim.x} + blockIdx.x) + t - zeros] = key;
    }
}

}  // namespace day19
