// Day 19: sort. The keys of in, in ascending order, become out.    PMPP chapter 13 (4th edition), 14 (5th edition)
//
//   version                what is new                                   what limits it
//   radix_1bit             a stable split by each bit, by a scan         32 passes, 28 bytes a key in each
//   radix_1bit_coalesced   blocks split in shared memory first           latency; 32 passes, 12 bytes a key
//   radix_multibit         4 bits in a pass                              ALU; short runs: 16 keys of a digit
//   radix_coarsened        15 keys per thread: longer runs               latency; 8 passes, 12 bytes a key
//
// A radix sort does not compare keys: a pass sorts them by one of their digits, the lowest one
// first. Each pass must be stable: where the digits are equal, keys keep the order that the earlier
// passes gave them.
//
// Each kernel is followed by its launch, for at least one key. All passes of a sort write `out` and
// `spare` by turns, the last one `out`. beyond/ takes eight bits in a pass, of a single kernel, and
// has sorts that compare keys: a network and merge sort.
//
//   ./course run day19                                every version, verified and timed
//   ./course run day19 --program                      program.cu: one sort, from main() to the result
//   ./course inspect day19 --only radix_1bit          sectors and bank conflicts, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "scan_counts.cuh"

namespace day19 {

using Key = std::uint32_t;

constexpr int kKeyBits = 32;
constexpr int kBlock = 256;  // threads of a block

// --- One bit in a pass ---------------------------------------------------------------------------

__device__ inline unsigned bit_of(Key key, int bit) {
    return key >> bit & 1;
}

// First kernel of a pass: the bit of each key. The scan (scan_counts.cuh) turns it into the number
// of ones before.
__global__ void bits_of_keys(const Key* in, std::size_t n, int bit, unsigned* ones) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < n) ones[i] = bit_of(in[i], bit);
}

// Idea: the keys whose bit is 0 come first, then those whose bit is 1, both in the order they had.
// A scan gives the number of ones before a key, and so the number of zeros before it: its place.
// Cost removed: all comparisons. 32 passes sort any number of keys.
// Still limits it: latency. A pass is four kernels, which move 28 bytes a key (2^20 keys, counters:
// no unit above 43 % here; in scan_parts, which takes longest, ALU 80 %). The 32 keys of a warp go
// to two places in memory, that of the zeros and that of the ones.
__global__ void scatter_by_bit(const Key* in, std::size_t n, int bit, const unsigned* ones,
                               const std::size_t* sums, Key* out) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i >= n) return;
    const Key key = in[i];
    const std::size_t ones_before = scanned(ones, sums, i);
    const std::size_t zeros = n - sums[(n - 1) / kScanBlock + 1];
    out[bit_of(key, bit) == 0 ? i - ones_before : zeros + ones_before] = key;
}

// counts: one for each key.
inline void launch_radix_1bit(const Key* in, std::size_t n, Key* out, Key* spare, unsigned* counts,
                              std::size_t* sums, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(n, kBlock);
    for (int bit = 0; bit < kKeyBits; ++bit) {
        Key* const to = bit % 2 == 1 ? out : spare;  // bit 31 is the last
        bits_of_keys<<<grid, kBlock, 0, stream>>>(in, n, bit, counts);
        launch_scan(counts, n, sums, stream);
        scatter_by_bit<<<grid, kBlock, 0, stream>>>(in, n, bit, counts, sums, to);
        in = to;
    }
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
// Still limits it: latency, 32 times (2^20 keys, counters: issue slots 58 % busy).
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

// counts: two for each block.
inline void launch_radix_1bit_coalesced(const Key* in, std::size_t n, Key* out, Key* spare, unsigned* counts,
                                        std::size_t* sums, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(n, kBlock);
    for (int bit = 0; bit < kKeyBits; ++bit) {
        Key* const to = bit % 2 == 1 ? out : spare;  // bit 31 is the last
        count_bits<<<grid, kBlock, 0, stream>>>(in, n, bit, counts);
        launch_scan(counts, std::size_t{2} * grid, sums, stream);
        scatter_split_tiles<<<grid, kBlock, 0, stream>>>(in, n, bit, counts, sums, to);
        in = to;
    }
}

// --- Several bits in a pass ----------------------------------------------------------------------

constexpr int kDigitBits = 4;
constexpr unsigned kDigits = 1U << kDigitBits;

__device__ inline unsigned digit_of(Key key, int bit) {
    return key >> bit & (kDigits - 1);
}

// How many keys of each block have each digit: first all blocks' 0, then all blocks' 1, and so on.
__global__ void __launch_bounds__(kBlock)
    count_digits(const Key* in, std::size_t n, int bit, unsigned* counts) {
    __shared__ unsigned count[kDigits];
    if (threadIdx.x < kDigits) count[threadIdx.x] = 0;
    __syncthreads();
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < n) atomicAdd(&count[digit_of(in[i], bit)], 1U);
    __syncthreads();
    if (threadIdx.x < kDigits) counts[std::size_t{threadIdx.x} * gridDim.x + blockIdx.x] = count[threadIdx.x];
}

// Idea: four bits at a time. Within the block four splits sort by them, one after the other, in
// shared memory.
// Cost removed: three of four passes over global memory.
// Still limits it: ALU (2^20 keys, counters: 73 % busy, issue slots 68 %). A block's 256 keys have
// 16 digits, so a run has about 16 keys, 64 bytes. There are 16 counts for 256 keys.
__global__ void __launch_bounds__(kBlock)
    scatter_sorted_tiles(const Key* in, std::size_t n, int bit, const unsigned* counts,
                         const std::size_t* sums, Key* out) {
    __shared__ Key tile[kBlock];
    __shared__ unsigned first_of_digit[kDigits];  // where the keys with that digit start in the tile
    const std::size_t first = std::size_t{blockIdx.x} * kBlock;
    const unsigned size = size_of_tile(n, first, kBlock);
    const unsigned t = threadIdx.x;
    Key key = t < size ? in[first + t] : kNoKey;
    for (int b = bit; b < bit + kDigitBits; ++b)
        key = split_by_bit(key, b, tile);

    const unsigned digit = digit_of(key, bit);
    if (t == 0 || digit_of(tile[t - 1], bit) != digit) first_of_digit[digit] = t;
    __syncthreads();
    if (t < size) {
        const std::size_t begin = scanned(counts, sums, std::size_t{digit} * gridDim.x + blockIdx.x);
        out[begin + t - first_of_digit[digit]] = key;
    }
}

// counts: 16 for each block.
inline void launch_radix_multibit(const Key* in, std::size_t n, Key* out, Key* spare, unsigned* counts,
                                  std::size_t* sums, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(n, kBlock);
    for (int bit = 0; bit < kKeyBits; bit += kDigitBits) {
        Key* const to = bit / kDigitBits % 2 == 1 ? out : spare;
        count_digits<<<grid, kBlock, 0, stream>>>(in, n, bit, counts);
        launch_scan(counts, std::size_t{kDigits} * grid, sums, stream);
        scatter_sorted_tiles<<<grid, kBlock, 0, stream>>>(in, n, bit, counts, sums, to);
        in = to;
    }
}

// --- Several keys per thread ---------------------------------------------------------------------

constexpr int kEach = 15;                   // keys per thread; odd, so that threads use different banks
constexpr unsigned kTile = kBlock * kEach;  // 3,840 keys of a block

__global__ void __launch_bounds__(kBlock)
    count_digits_of_tiles(const Key* in, std::size_t n, int bit, unsigned* counts) {
    __shared__ unsigned count[kDigits];
    if (threadIdx.x < kDigits) count[threadIdx.x] = 0;
    __syncthreads();
    const std::size_t first = std::size_t{blockIdx.x} * kTile;
    const unsigned size = size_of_tile(n, first, kTile);
    for (unsigned i = threadIdx.x; i < size; i += kBlock)
        atomicAdd(&count[digit_of(in[first + i], bit)], 1U);
    __syncthreads();
    if (threadIdx.x < kDigits) counts[std::size_t{threadIdx.x} * gridDim.x + blockIdx.x] = count[threadIdx.x];
}

// Like split_by_bit, for a whole tile. A thread has 15 consecutive keys, so one scan serves them
// all.
__device__ inline void split_tile(Key (&keys)[kEach], int bit, Key* tile) {
    unsigned my_ones = 0;
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        my_ones += bit_of(keys[k], bit);
    unsigned ones;
    unsigned ones_before = sum_before<kBlock>(my_ones, ones);
    const unsigned zeros = kTile - ones;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        const unsigned is_one = bit_of(keys[k], bit);
        const unsigned place = threadIdx.x * kEach + k;
        tile[is_one == 0 ? place - ones_before : zeros + ones_before] = keys[k];
        ones_before += is_one;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        keys[k] = tile[threadIdx.x * kEach + k];
}

// Idea: a block has 3,840 keys, and a thread 15 consecutive ones of them.
// Cost removed: 14 of 15 counts, and most scans. A run has about 240 keys, so nearly all sectors
// are stored whole.
// Still limits it: latency (2^20 keys, counters: no unit above 32 %). A key is read twice in each
// of 8 passes, and four splits take 8 barriers.
__global__ void __launch_bounds__(kBlock)
    scatter_large_tiles(const Key* in, std::size_t n, int bit, const unsigned* counts,
                        const std::size_t* sums, Key* out) {
    __shared__ Key tile[kTile];
    __shared__ unsigned first_of_digit[kDigits];
    const std::size_t first = std::size_t{blockIdx.x} * kTile;
    const unsigned size = size_of_tile(n, first, kTile);
    for (unsigned i = threadIdx.x; i < kTile; i += kBlock)
        tile[i] = i < size ? in[first + i] : kNoKey;
    __syncthreads();
    Key keys[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        keys[k] = tile[threadIdx.x * kEach + k];
    for (int b = bit; b < bit + kDigitBits; ++b)
        split_tile(keys, b, tile);

    for (unsigned i = threadIdx.x; i < kTile; i += kBlock) {
        const unsigned digit = digit_of(tile[i], bit);
        if (i == 0 || digit_of(tile[i - 1], bit) != digit) first_of_digit[digit] = i;
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < size; i += kBlock) {
        const unsigned digit = digit_of(tile[i], bit);
        const std::size_t begin = scanned(counts, sums, std::size_t{digit} * gridDim.x + blockIdx.x);
        out[begin + i - first_of_digit[digit]] = tile[i];
    }
}

// counts: 16 for each block.
inline void launch_radix_coarsened(const Key* in, std::size_t n, Key* out, Key* spare, unsigned* counts,
                                   std::size_t* sums, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(n, kTile);
    for (int bit = 0; bit < kKeyBits; bit += kDigitBits) {
        Key* const to = bit / kDigitBits % 2 == 1 ? out : spare;
        count_digits_of_tiles<<<grid, kBlock, 0, stream>>>(in, n, bit, counts);
        launch_scan(counts, std::size_t{kDigits} * grid, sums, stream);
        scatter_large_tiles<<<grid, kBlock, 0, stream>>>(in, n, bit, counts, sums, to);
        in = to;
    }
}

}  // namespace day19
