// Day 4, beyond: how much the near memories deliver, and what decides which memory answers.
//
//   version           what is new                                       what limits it
//   again_l1          each SM reads its own bytes over and over         instructions; L1, L2 or DRAM, by size
//   again_small_l1    the same kernel prefers shared memory to L1       L2 or DRAM, by size; L1 if 28 KB do
//   again_shared      the bytes are in shared memory                    instructions at 16 KB; shared memory
//   lookup            records pass by, each looks up a word in a table  DRAM: records, and much of the table
//   lookup_streaming  records are evicted first                         DRAM: records, and less of the table
//   lookup_window     the launch makes the table persist in L2          DRAM: records, and a part of the table
//   stretch           each warp reads adjacent elements, line by line   latency: one line in flight per warp
//   stretch_ahead     L2 fetches two lines for a load                   latency, of L2 for some of the lines
//   chase_far         a list whose lines are pages apart                latency: of L2, no more up to 64 GB
//   large_blocks      each block notes on which SM it ran, and when     multiply-adds; the last wave
//   small_blocks      the same threads in blocks of 128                 multiply-adds; a shorter last wave
//
// Each kernel is followed by its launch.
//
//   ./course run day04 --only again_shared                 one version, verified and timed
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "beyond/near_and_far.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/ptx.cuh"
#include "memory_hierarchy.cuh"

namespace day04 {

// --- Near: the bandwidth of L1 and of shared memory ----------------------------------------------
//
// x has a piece of `quads` times 16 bytes for each SM. One block of 1,024 threads per SM adds up
// its piece `rounds` times. Each thread stores its own sum, modulo 2^32.
constexpr unsigned kPieceBlock = 1024;

// Idea: after the first round, a piece is in the nearest cache that holds it. With 1,024 threads
// that load 16 bytes each, 16 KB are in flight per SM, more than L1's latency needs.
// Cost removed: the way to L2, if L1 holds the piece.
// Limits it: the bandwidth of L1 (with a piece of 16 KB, the instructions of the loops); of L2 for
// a larger piece, of DRAM when all pieces together are larger than L2.
__global__ void again(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums) {
    const uint4* const piece = x + std::size_t{blockIdx.x} * quads;
    unsigned sum = 0;
    for (unsigned round = 0; round < rounds; ++round) {
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < quads; i += kPieceBlock) {
            const uint4 quad = piece[i];
            sum += quad.x + quad.y + quad.z + quad.w;
        }
    }
    sums[blockIdx.x * kPieceBlock + threadIdx.x] = sum;
}

// The carveout is the part of an SM's 256 KB that is set aside for shared memory, in percent of the
// most that it can be. The kernel itself has no shared memory, so L1 gets as much as possible.
inline void launch_again_l1(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums,
                            cudaStream_t stream) {
    CUDA_CHECK(cudaFuncSetAttribute(again, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxL1));
    again<<<course::multiprocessors(), kPieceBlock, 0, stream>>>(x, quads, rounds, sums);
}

// Idea: the same kernel with the largest carveout, as if the kernel before or beside it needed much
// shared memory.
// Cost added: L1 has only what is left.
// Limits it: L2, for pieces that the smaller L1 does not hold: 3.4 times the time with 64 KB. DRAM,
// as above, for the largest.
inline void launch_again_small_l1(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums,
                                  cudaStream_t stream) {
    CUDA_CHECK(cudaFuncSetAttribute(again, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared));
    again<<<course::multiprocessors(), kPieceBlock, 0, stream>>>(x, quads, rounds, sums);
}

// Idea: the block copies its piece to shared memory, then reads it there.
// Cost removed: looking for the line, and any doubt about what the cache keeps.
// Limits it: the bandwidth of shared memory, and its size: 227 KB of a block. With a piece of 16
// KB, a thread loads once in a round, and instructions limit it (counters: issue 87 % busy).
__global__ void again_shared(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums) {
    extern __shared__ uint4 copy[];  // quads
    const uint4* const piece = x + std::size_t{blockIdx.x} * quads;
    for (unsigned i = threadIdx.x; i < quads; i += kPieceBlock)
        copy[i] = piece[i];
    // No barrier: a thread reads only what it has copied itself.
    unsigned sum = 0;
    for (unsigned round = 0; round < rounds; ++round) {
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < quads; i += kPieceBlock) {
            const uint4 quad = copy[i];
            sum += quad.x + quad.y + quad.z + quad.w;
        }
    }
    sums[blockIdx.x * kPieceBlock + threadIdx.x] = sum;
}

// More than 48 KB of shared memory have to be allowed first; course::launch does it.
inline void launch_again_shared(const uint4* x, unsigned quads, unsigned rounds, unsigned* sums,
                                cudaStream_t stream) {
    course::launch(again_shared, {course::multiprocessors(), kPieceBlock, quads * sizeof(uint4), stream}, x,
                   quads, rounds, sums);
}

// --- L2: what stays in it ------------------------------------------------------------------------
//
// A record is a line of 128 bytes, of which every byte is read once. Its first word leads to a word
// of the table, which is smaller than L2. T threads, as many as the GPU holds, add up all words of
// all records and the words that were looked up; thread t stores its own sum, modulo 2^32.

constexpr unsigned kQuadsOfRecord = 8;

// Idea: a thread loads 16 bytes of a record; the thread with the first 16 looks up the word.
// Cost removed: none yet. L2 keeps what was used last, and between two loads of the same line of
// the table many records pass by.
// Limits it: DRAM. It delivers the records, and lines of the table again and again.
__global__ void lookup(const uint4* records, std::size_t quads, const unsigned* table, unsigned mask,
                       unsigned* sums) {
    const std::size_t t = blockIdx.x * kBlock + threadIdx.x;
    const std::size_t threads = gridDim.x * kBlock;
    unsigned sum = 0;
#pragma unroll 1
    for (std::size_t i = t; i < quads; i += threads) {
        const uint4 quad = records[i];
        sum += quad.x + quad.y + quad.z + quad.w;
        if (i % kQuadsOfRecord == 0) sum += table[quad.x & mask];
    }
    sums[t] = sum;
}

// 64 warps per SM, the most that it holds. The table has mask + 1 words, a power of two.
inline void launch_lookup(const uint4* records, std::size_t quads, const unsigned* table, unsigned mask,
                          unsigned* sums, cudaStream_t stream) {
    lookup<<<course::multiprocessors() * 8, kBlock, 0, stream>>>(records, quads, table, mask, sums);
}

// Idea: __ldcs marks a line as the first to be evicted, because it is used once.
// Cost removed: most lines of the table that records evict.
// Limits it: DRAM, which delivers the records, and still a part of the table.
__global__ void lookup_streaming(const uint4* records, std::size_t quads, const unsigned* table,
                                 unsigned mask, unsigned* sums) {
    const std::size_t t = blockIdx.x * kBlock + threadIdx.x;
    const std::size_t threads = gridDim.x * kBlock;
    unsigned sum = 0;
#pragma unroll 1
    for (std::size_t i = t; i < quads; i += threads) {
        const uint4 quad = __ldcs(&records[i]);
        sum += quad.x + quad.y + quad.z + quad.w;
        if (i % kQuadsOfRecord == 0) sum += table[quad.x & mask];
    }
    sums[t] = sum;
}

inline void launch_lookup_streaming(const uint4* records, std::size_t quads, const unsigned* table,
                                    unsigned mask, unsigned* sums, cudaStream_t stream) {
    lookup_streaming<<<course::multiprocessors() * 8, kBlock, 0, stream>>>(records, quads, table, mask, sums);
}

// Idea: the kernel is `lookup`, unchanged. The launch has a window of addresses, the table, whose
// lines are to persist in L2.
// Cost removed: as above, if a part of L2 is set aside for such lines; fewer than
// `lookup_streaming` removes.
// Limits it: DRAM, which delivers the records, and still a part of the table.
inline void launch_lookup_window(const uint4* records, std::size_t quads, const unsigned* table,
                                 unsigned mask, unsigned* sums, cudaStream_t stream) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeAccessPolicyWindow;
    cudaAccessPolicyWindow& window = attribute.val.accessPolicyWindow;
    window.base_ptr = const_cast<unsigned*>(table);
    window.num_bytes = (std::size_t{mask} + 1) * sizeof(unsigned);
    window.hitRatio = 1;  // all of the window's lines
    window.hitProp = cudaAccessPropertyPersisting;
    window.missProp = cudaAccessPropertyStreaming;  // all other loads
    cudaLaunchConfig_t how{};
    how.gridDim = course::multiprocessors() * 8;
    how.blockDim = kBlock;
    how.stream = stream;
    how.attrs = &attribute;
    how.numAttrs = 1;
    CUDA_CHECK(cudaLaunchKernelEx(&how, lookup, records, quads, table, mask, sums));
}

// Sets a part of L2 aside for lines that persist; 0 gives it back. It holds for the whole device.
inline void set_l2_aside(std::size_t bytes) {
    CUDA_CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, bytes));
    if (bytes == 0) CUDA_CHECK(cudaCtxResetPersistingL2Cache());
}

// --- L2: how much it fetches ---------------------------------------------------------------------
//
// Sums as in memory_hierarchy.cuh, but warp w has a stretch of x of its own: w * each lines of 32
// elements behind the start.

// Idea: as `read_one`, a thread has one load in flight. The next line of a warp is the next line in
// memory.
// Limits it: latency of DRAM.
__global__ void stretch(const unsigned* x, std::size_t n, unsigned* sums) {
    const std::size_t t = blockIdx.x * kBlock + threadIdx.x;
    const std::size_t warps = gridDim.x * (kBlock / 32);
    const std::size_t each = course::ceil_div(n, 32 * warps) * 32;  // elements of a warp
    const std::size_t end = min(n, (t / 32 + 1) * each);
    unsigned sum = 0;
#pragma unroll 1
    for (std::size_t i = t / 32 * each + t % 32; i < end; i += 32)
        sum += x[i];
    sums[t] = sum;
}

inline void launch_stretch(const unsigned* x, std::size_t n, unsigned blocks_per_sm, unsigned* sums,
                           cudaStream_t stream) {
    stretch<<<course::multiprocessors() * blocks_per_sm, kBlock, 0, stream>>>(x, n, sums);
}

// Idea: the load has a hint of how much L2 should fetch from DRAM: the aligned 256 bytes around the
// address. The load itself brings 128 bytes to the SM, as before.
// Cost removed: waits for DRAM, where the line is already in L2. It should be every second one,
// which would be 1.4 times as fast. Measured: 1.2 times.
// Limits it: latency, now of L2 for some of the lines.
__global__ void stretch_ahead(const unsigned* x, std::size_t n, unsigned* sums) {
    const std::size_t t = blockIdx.x * kBlock + threadIdx.x;
    const std::size_t warps = gridDim.x * (kBlock / 32);
    const std::size_t each = course::ceil_div(n, 32 * warps) * 32;
    const std::size_t end = min(n, (t / 32 + 1) * each);
    unsigned sum = 0;
#pragma unroll 1
    for (std::size_t i = t / 32 * each + t % 32; i < end; i += 32)
        sum += course::ptx::ld_fetch_256(&x[i]);
    sums[t] = sum;
}

inline void launch_stretch_ahead(const unsigned* x, std::size_t n, unsigned blocks_per_sm, unsigned* sums,
                                 cudaStream_t stream) {
    stretch_ahead<<<course::multiprocessors() * blocks_per_sm, kBlock, 0, stream>>>(x, n, sums);
}

// --- Far: addresses that are pages apart ---------------------------------------------------------

// Idea: `chase_l2` with a list of few lines, each in a page of its own, so that L2 holds all of
// them although they are spread over many GB. Positions are counted in words of 8 bytes, because 32
// bits do not count that many.
// Cost removed: everything but L2 and the translation of a virtual address. The hardware keeps the
// translations of the pages that were used last.
// Limits it: latency: of L2. Fetching a translation would add to it when there are more pages than
// the hardware keeps, but an H200 shows no rise up to 32,768 pages of 2 MB, which are 64 GB.
__global__ void chase_far(const unsigned long long* next, unsigned long long start, unsigned steps,
                          unsigned long long* last) {
    unsigned long long at = start;
    for (unsigned step = 0; step < steps; ++step)
        at = __ldcg(&next[at]);
    *last = at;
}

inline void launch_chase_far(const unsigned long long* next, unsigned long long start, unsigned steps,
                             unsigned long long* last, cudaStream_t stream) {
    chase_far<<<1, 1, 0, stream>>>(next, start, steps, last);
}

// --- Which block runs on which SM, and when ------------------------------------------------------

// Idea: every thread computes `steps` steps of a sequence of integers, value * value + 1, so all
// blocks have the same work. A block stores a note of its stay on an SM.
// Limits it: multiply-adds (counters: FMA 99 % busy) on the SM with the most blocks. SMs that are
// done compute nothing.
__global__ void noted(unsigned steps, unsigned* values, Stay* stays) {
    const unsigned long long begin = course::ptx::globaltimer();
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = t;
    for (unsigned step = 0; step < steps; ++step)
        value = value * value + 1;
    values[t] = value;
    __syncthreads();  // the last thread of the block is done
    if (threadIdx.x == 0) {
        Stay& stay = stays[blockIdx.x];
        stay.begin = begin;
        stay.end = course::ptx::globaltimer();
        stay.sm = course::ptx::smid();
    }
}

// Two blocks of 1,024 threads fill an SM. `threads` is a multiple of the threads of a block, here
// and below.
inline void launch_large_blocks(unsigned threads, unsigned steps, unsigned* values, Stay* stays,
                                cudaStream_t stream) {
    noted<<<threads / 1024, 1024, 0, stream>>>(steps, values, stays);
}

// Idea: the same threads in blocks of 128, of which 16 fill an SM.
// Cost removed: a part of the last wave: what is left after whole waves is spread over more SMs.
inline void launch_small_blocks(unsigned threads, unsigned steps, unsigned* values, Stay* stays,
                                cudaStream_t stream) {
    noted<<<threads / 128, 128, 0, stream>>>(steps, values, stays);
}

}  // namespace day04
