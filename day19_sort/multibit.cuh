// Day 19: radix sorts that take four bits in a pass.
//
//   version                what is new                                   what limits it
//   radix_multibit         4 bits in a pass                              short runs: 16 keys of a digit
//   radix_coarsened        15 keys per thread: longer runs               8 passes, 12 bytes a key in each
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "sort.cuh"

namespace day19 {

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
// Still limits it: a block's 256 keys have 16 digits, so a run has about 16 keys, 64 bytes. There
// are 16 counts for 256 keys.
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
// Still limits it: a key is read twice in each of 8 passes, and four splits take 8 barriers.
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

}  // namespace day19
