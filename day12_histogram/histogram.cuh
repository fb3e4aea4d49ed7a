// Day 12: histogram. How often does each byte occur?         PMPP chapter 9 (4th and 5th edition)
//
//   version                 where a value is counted         what limits it
//   global_atomics          in the result itself             atomics on the same address, one by one
//   shared_private          in a copy per block              256 values per block, 256 counters to add
//   coarsened_contiguous    the same; a thread takes a       lanes load bytes that are far apart
//                           consecutive stretch
//   coarsened_interleaved   the same; adjacent threads       latency: one byte per load
//                           take adjacent values
//   aggregated              runs are counted in a register   bank conflicts (day 6) of shared atomics
//
// Every value is read once and next to nothing is written, so the best possible time is bytes /
// (read bandwidth). Counting a byte must not take longer than loading it. beyond/ has copies per
// warp and per lane, ints and any number of bins.
//
//   ./course run day12                                     every version, verified and timed
//   ./course run day12 --program                           program.cu: the same from main() to the end
//   ./course inspect day12 --only coarsened_contiguous     sectors of each load
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"

namespace day12 {

constexpr int kBins = 256;           // one per byte
constexpr int kBlock = 256;          // threads of a block
using Counter = unsigned long long;  // 64 bits: no count wraps. atomicAdd does not take std::uint64_t

// All launches: `counts` has kBins counters, which are 0, and n is at least 1.

// Idea: one thread per value. atomicAdd makes read, add and write one step, so no count is lost.
// Cost removed: the loop of the CPU.
// Still limits it: all SMs add to 256 addresses in L2, and L2 performs the atomics on one address
// one after the other. Counters: the busiest slice of L2 adds 80 % of the time.
__global__ void count_global_atomics(const std::uint8_t* values, std::size_t n, Counter* counts) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < n) atomicAdd(counts + values[i], 1);
}

inline void launch_global_atomics(const std::uint8_t* values, std::size_t n, Counter* counts,
                                  cudaStream_t stream) {
    const unsigned blocks = course::blocks_for(n, kBlock);
    count_global_atomics<<<blocks, kBlock, 0, stream>>>(values, n, counts);
}

// Idea: privatisation. A block counts in its own shared memory and adds its counters to the result
// once, at the end.
// Cost removed: the round trip to L2, and contention with other blocks, for every value.
// Still limits it: for 256 values a block clears 256 counters and adds 256 counters to the result.
// Counters: the busiest slice of L2 adds 85 % of the time.
__global__ void count_shared_private(const std::uint8_t* values, std::size_t n, Counter* counts) {
    static_assert(kBlock == kBins, "thread t clears and adds counter t");
    __shared__ unsigned counters[kBins];
    counters[threadIdx.x] = 0;
    __syncthreads();  // all counters are 0

    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < n) atomicAdd(counters + values[i], 1);
    __syncthreads();  // all values are counted

    const unsigned count = counters[threadIdx.x];
    if (count != 0) atomicAdd(counts + threadIdx.x, count);
}

inline void launch_shared_private(const std::uint8_t* values, std::size_t n, Counter* counts,
                                  cudaStream_t stream) {
    const unsigned blocks = course::blocks_for(n, kBlock);
    count_shared_private<<<blocks, kBlock, 0, stream>>>(values, n, counts);
}

// As many blocks as the GPU can hold at once, but no more threads than there are `share` values
// for. A counter of a block has 32 bits, so a block must not have 2^32 values.
template <class Kernel>
unsigned few_blocks(Kernel* kernel, int threads, std::size_t n, std::size_t share) {
    const unsigned most = course::blocks_for(course::ceil_div(n, share), threads);
    const unsigned fewest = course::blocks_for(n, 1 << 30);
    return std::min(most, std::max(fewest, course::resident_blocks(kernel, threads)));
}

// Idea: thread coarsening. Only as many blocks as the GPU can hold at once, so each thread has many
// values: here a stretch of consecutive ones.
// Cost removed: clearing and adding the counters for every 256 values.
// Still limits it: on each iteration the 32 lanes of a warp load from 32 distant addresses.
// Counters: 32 sectors per load, L1 65 % busy.
__global__ void count_coarsened_contiguous(const std::uint8_t* values, std::size_t n, Counter* counts) {
    __shared__ unsigned counters[kBins];
    counters[threadIdx.x] = 0;
    __syncthreads();

    const std::size_t threads = std::size_t{gridDim.x} * kBlock;
    const std::size_t stretch = (n + threads - 1) / threads;  // values of a thread
    const std::size_t begin = (std::size_t{blockIdx.x} * kBlock + threadIdx.x) * stretch;
    for (std::size_t i = begin; i < begin + stretch && i < n; ++i)
        atomicAdd(counters + values[i], 1);
    __syncthreads();

    const unsigned count = counters[threadIdx.x];
    if (count != 0) atomicAdd(counts + threadIdx.x, count);
}

inline void launch_coarsened_contiguous(const std::uint8_t* values, std::size_t n, Counter* counts,
                                        cudaStream_t stream) {
    const unsigned blocks = few_blocks(count_coarsened_contiguous, kBlock, n, 1);
    count_coarsened_contiguous<<<blocks, kBlock, 0, stream>>>(values, n, counts);
}

// Idea: as many values per thread as before, but in a grid-stride loop: adjacent lanes load
// adjacent values.
// Cost removed: 31 of 32 sectors of each load.
// Still limits it: latency, because each byte takes a load instruction (counters: warps wait for
// loads 93 % of their time, and no unit is above 36 %).
__global__ void count_coarsened_interleaved(const std::uint8_t* values, std::size_t n, Counter* counts) {
    __shared__ unsigned counters[kBins];
    counters[threadIdx.x] = 0;
    __syncthreads();

    const std::size_t threads = std::size_t{gridDim.x} * kBlock;
    for (std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x; i < n; i += threads)
        atomicAdd(counters + values[i], 1);
    __syncthreads();

    const unsigned count = counters[threadIdx.x];
    if (count != 0) atomicAdd(counts + threadIdx.x, count);
}

inline void launch_coarsened_interleaved(const std::uint8_t* values, std::size_t n, Counter* counts,
                                         cudaStream_t stream) {
    const unsigned blocks = few_blocks(count_coarsened_interleaved, kBlock, n, 1);
    count_coarsened_interleaved<<<blocks, kBlock, 0, stream>>>(values, n, counts);
}

using Words = course::Pack<unsigned, 4>;  // the 16 bytes of one load
constexpr int kPacksInFlight = 4;         // loads of a thread before it counts the first value

// Calls visit(value) for this thread's share of the values, in packs of 16 bytes. The few values
// before the first aligned address and after the last whole pack go to the first threads of the
// grid.
template <class Value, class Visit>
__device__ void for_each_in_packs(const Value* values, std::size_t n, Visit visit) {
    constexpr std::size_t kPerPack = sizeof(Words) / sizeof(Value);
    const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(values) / sizeof(Value) % kPerPack;
    const std::size_t to_aligned = (kPerPack - misaligned) % kPerPack;
    const std::size_t head = to_aligned < n ? to_aligned : n;
    const std::size_t packs = (n - head) / kPerPack;
    const std::size_t tail = head + packs * kPerPack;

    const auto load = [&](std::size_t pack) {
        return Words::load(reinterpret_cast<const unsigned*>(values + head + pack * kPerPack));
    };
    const auto visit_all = [&](const Words& words) {
#pragma unroll
        for (const unsigned word : words.value) {
#pragma unroll
            for (unsigned bit = 0; bit < 32; bit += 8 * sizeof(Value))
                visit(static_cast<Value>(word >> bit));
        }
    };

    const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
    std::size_t pack = thread;
    for (; pack + (kPacksInFlight - 1) * threads < packs; pack += kPacksInFlight * threads) {
        Words in_flight[kPacksInFlight];
#pragma unroll
        for (int k = 0; k < kPacksInFlight; ++k)
            in_flight[k] = load(pack + k * threads);
#pragma unroll
        for (int k = 0; k < kPacksInFlight; ++k)
            visit_all(in_flight[k]);
    }
    for (; pack < packs; pack += threads)
        visit_all(load(pack));
    if (thread < head) visit(values[thread]);
    if (thread < n - tail) visit(values[tail + thread]);
}

// Idea: aggregation. A thread loads 16 consecutive bytes at once and counts a run of equal ones in
// a register. A run costs one atomic.
// Cost removed: 15 of 16 loads on any data; atomics on data with runs.
// Still limits it: on data without runs, one atomic on shared memory per value, and lanes whose
// counters share a bank are served one after the other. Counters: shared memory 88 % busy; 22 of 31
// million wavefronts are bank conflicts. The comparisons cost issue slots, of which 72 % are used.
__global__ void count_aggregated(const std::uint8_t* values, std::size_t n, Counter* counts) {
    __shared__ unsigned counters[kBins];
    counters[threadIdx.x] = 0;
    __syncthreads();

    unsigned run_value = 0;
    unsigned run_length = 0;
    for_each_in_packs(values, n, [&](std::uint8_t value) {
        if (value != run_value) {
            atomicAdd(counters + run_value, run_length);
            run_value = value;
            run_length = 0;
        }
        ++run_length;
    });
    atomicAdd(counters + run_value, run_length);  // the last run
    __syncthreads();

    const unsigned count = counters[threadIdx.x];
    if (count != 0) atomicAdd(counts + threadIdx.x, count);
}

inline void launch_aggregated(const std::uint8_t* values, std::size_t n, Counter* counts,
                              cudaStream_t stream) {
    const unsigned blocks = few_blocks(count_aggregated, kBlock, n, sizeof(Words));
    count_aggregated<<<blocks, kBlock, 0, stream>>>(values, n, counts);
}

}  // namespace day12
