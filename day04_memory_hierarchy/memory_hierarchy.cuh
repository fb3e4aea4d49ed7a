// Day 4: memory hierarchy.                                PMPP chapters 4 and 5 (4th and 5th edition)
//
// Two questions about each memory: how long does one load take (latency), and how many bytes a
// second does it deliver when many loads are in flight at the same time (bandwidth)?
//
//   version       what is new                                       what limits it
//   chase         each load needs the result of the one before      latency: of L1, L2 or DRAM, by size
//   chase_l2      the same loads, but never from L1                 latency: of L2 or DRAM
//   chase_shared  the list is in shared memory                      latency: of shared memory
//
//   read_one      a thread has one load of 4 bytes in flight        latency: too few bytes in flight
//   read_four     four loads of 4 bytes                             the same, with few warps; else bandwidth
//   read_wide     one load of 16 bytes                              the same, with few warps; else bandwidth
//
// Each kernel is followed by its launch.
//
//   ./course run day04                                     every version, verified and timed
//   ./course run day04 --program                           program.cu: the latency of lists of several sizes
//   ./course inspect day04 --only read_wide                bytes and requests, line by line, without a GPU
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"

namespace day04 {

constexpr unsigned kLine = 32;            // words of 4 bytes in a cache line of 128 bytes
constexpr unsigned kLinesInShared = 384;  // 48 KB, the most that a kernel may declare
constexpr unsigned kBlock = 256;          // threads of a block

// Idea: a pointer chase. Each line of `next` holds one word, at its start: where the next line
// starts, counted in words. One thread follows the list, so it has one load in flight at any time.
// Cost removed: everything but the load and the computation of its address.
// Limits it: latency, by design. How much depends on where a line is found: after the first round,
// a list of a few KB is in L1, one of a few MB in L2, and a longer one only in DRAM.
__global__ void chase(const unsigned* next, unsigned start, unsigned steps, unsigned* last) {
    unsigned at = start;
    for (unsigned step = 0; step < steps; ++step)
        at = next[at];
    *last = at;
}

// One thread. `start` is the first word of a line.
inline void launch_chase(const unsigned* next, unsigned /*lines*/, unsigned start, unsigned steps,
                         unsigned* last, cudaStream_t stream) {
    chase<<<1, 1, 0, stream>>>(next, start, steps, last);
}

// Idea: __ldcg loads through L2 only; L1 is not looked at. All SMs share L2, each has its own L1.
// Cost added: the trip to L2, which L1 saves for a short list.
// Limits it: the latency of L2, of DRAM for a list that is larger than L2.
__global__ void chase_l2(const unsigned* next, unsigned start, unsigned steps, unsigned* last) {
    unsigned at = start;
    for (unsigned step = 0; step < steps; ++step)
        at = __ldcg(&next[at]);
    *last = at;
}

inline void launch_chase_l2(const unsigned* next, unsigned /*lines*/, unsigned start, unsigned steps,
                            unsigned* last, cudaStream_t stream) {
    chase_l2<<<1, 1, 0, stream>>>(next, start, steps, last);
}

// Idea: the block copies the list to shared memory, then one thread follows it there.
// Cost removed: looking for the line. An address in shared memory is a place; a cache has to find
// out whether it has the line.
// Limits it: the latency of shared memory, and its size: lists of up to 384 lines.
__global__ void chase_shared(const unsigned* next, unsigned lines, unsigned start, unsigned steps,
                             unsigned* last) {
    __shared__ unsigned copy[kLinesInShared * kLine];
    for (unsigned i = threadIdx.x; i < lines * kLine; i += kBlock)
        copy[i] = next[i];
    __syncthreads();
    if (threadIdx.x != 0) return;
    unsigned at = start;
    for (unsigned step = 0; step < steps; ++step)
        at = copy[at];
    *last = at;
}

// One block, because shared memory is visible to one block only.
inline void launch_chase_shared(const unsigned* next, unsigned lines, unsigned start, unsigned steps,
                                unsigned* last, cudaStream_t stream) {
    chase_shared<<<1, kBlock, 0, stream>>>(next, lines, start, steps, last);
}

// --- Bandwidth -----------------------------------------------------------------------------------
//
// T threads add up the n elements of x; thread t stores its own sum, modulo 2^32, in sums[t]. The
// launches have blocks_per_sm blocks for each SM, whatever n is, so the number of warps is fixed.

// Idea: thread t takes elements t, t + T, t + 2 T, ... The addition needs the loaded value, so a
// thread waits for each load before it issues the next one: 4 bytes in flight.
// Cost removed: waiting for one load at a time. Now every thread of the GPU has one.
// Still limits it: latency. All loads in flight together are fewer bytes than latency times
// bandwidth.
__global__ void read_one(const unsigned* x, std::size_t n, unsigned* sums) {
    const std::size_t t = blockIdx.x * kBlock + threadIdx.x;
    const std::size_t threads = gridDim.x * kBlock;
    unsigned sum = 0;
#pragma unroll 1  // or the compiler would issue several loads before the first addition
    for (std::size_t i = t; i < n; i += threads)
        sum += x[i];
    sums[t] = sum;
}

inline void launch_read_one(const unsigned* x, std::size_t n, unsigned blocks_per_sm, unsigned* sums,
                            cudaStream_t stream) {
    read_one<<<course::multiprocessors() * blocks_per_sm, kBlock, 0, stream>>>(x, n, sums);
}

// Idea: four loads that do not need each other, before the first addition. The thread waits once
// for all four: 16 bytes in flight.
// Cost removed: three of four waits.
// Still limits it: with 8 warps per SM, latency as before; with 64, the bandwidth of DRAM or L2.
__global__ void read_four(const unsigned* x, std::size_t n, unsigned* sums) {
    const std::size_t t = blockIdx.x * kBlock + threadIdx.x;
    const std::size_t threads = gridDim.x * kBlock;
    unsigned sum = 0;
    std::size_t i = t;
#pragma unroll 1
    for (; i + 3 * threads < n; i += 4 * threads) {
        const unsigned a = x[i];
        const unsigned b = x[i + threads];
        const unsigned c = x[i + 2 * threads];
        const unsigned d = x[i + 3 * threads];
        sum += a + b + c + d;
    }
#pragma unroll 1
    for (; i < n; i += threads)
        sum += x[i];
    sums[t] = sum;
}

inline void launch_read_four(const unsigned* x, std::size_t n, unsigned blocks_per_sm, unsigned* sums,
                             cudaStream_t stream) {
    read_four<<<course::multiprocessors() * blocks_per_sm, kBlock, 0, stream>>>(x, n, sums);
}

// Idea: one load of 16 bytes, four adjacent elements. x is aligned to 16 bytes, as cudaMalloc
// aligns it.
// Cost removed: three of four instructions, and three of four requests to memory.
// Still limits it: as many bytes are in flight as in `read_four`, so the same.
__global__ void read_wide(const unsigned* x, std::size_t n, unsigned* sums) {
    const std::size_t t = blockIdx.x * kBlock + threadIdx.x;
    const std::size_t threads = gridDim.x * kBlock;
    const uint4* const quads = reinterpret_cast<const uint4*>(x);
    unsigned sum = 0;
#pragma unroll 1
    for (std::size_t i = t; i < n / 4; i += threads) {
        const uint4 quad = quads[i];
        sum += quad.x + quad.y + quad.z + quad.w;
    }
    if (t < n % 4) sum += x[n - 1 - t];  // up to three elements after the last quad
    sums[t] = sum;
}

inline void launch_read_wide(const unsigned* x, std::size_t n, unsigned blocks_per_sm, unsigned* sums,
                             cudaStream_t stream) {
    read_wide<<<course::multiprocessors() * blocks_per_sm, kBlock, 0, stream>>>(x, n, sums);
}

}  // namespace day04
