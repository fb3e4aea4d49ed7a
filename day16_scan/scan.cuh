// Day 16: prefix sum, or scan. out[i] = in[0] + ... + in[i].      PMPP chapter 11 (4th and 5th edition)
//
//   version                    what is new                                 what limits it
//   kogge_stone                each step adds the value twice as far away  shared memory, two barriers a step
//   kogge_stone_double_buffer  read one array, write the other             shared memory
//   brent_kung                 a tree up, a tree down: 2 n additions       shared memory: bank conflicts
//   coarsened                  a thread scans 8 elements by itself         shared memory: bank conflicts
//   warp_shuffle               warps scan in registers                     latency: an element per thread
//
// A scan must read n elements and write n. Each kernel scans one section per block. The sums of the
// sections are scanned in the same way, and add_sums adds them to the elements: three kernels. Each
// kernel is followed by its launch. beyond/ has larger tiles, a single pass over memory, and other
// operators.
//
//   ./course run day16                                  every version, verified and timed
//   ./course run day16 --program                        program.cu: one scan, from main() to the result
//   ./course inspect day16 --only coarsened             bank conflicts, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "block_scan.cuh"
#include "common/device/grid.hpp"

namespace day16 {

// Idea: after the step with `stride`, each element holds the sum of the 2 * stride elements up to
// it.
// Cost removed: the chain of n - 1 dependent additions: 8 steps for 256 elements.
// Still limits it: n log2 n additions instead of n, each with accesses to shared memory, and two
// barriers in each step. Counters at 2^28 elements: shared memory 65 % busy, FMA 11 %; 26 % of the
// time of its warps at barriers. At 2^20 its five launches take 4 us on average,
// too short to fill the GPU.
//
// Without the second barrier there is a data race: a thread could read an element that its owner
// has already changed in this step.
__global__ void kogge_stone(const float* in, float* out, std::size_t n, float* sums) {
    __shared__ float values[kBlock];
    const unsigned t = threadIdx.x;
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + t;
    values[t] = i < n ? in[i] : 0.0f;
    for (unsigned stride = 1; stride < kBlock; stride *= 2) {
        __syncthreads();  // the step before is complete
        const float left = t >= stride ? values[t - stride] : 0.0f;
        __syncthreads();  // all threads have read
        values[t] += left;
    }
    if (i < n) out[i] = values[t];
    if (t == kBlock - 1) sums[blockIdx.x] = values[t];
}

// The third kernel of a scan by sections: adds the sum of all sections before to each element.
__global__ void add_sums(float* out, std::size_t n, const float* sums, unsigned section) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    const std::size_t number = i / section;
    if (i < n && number > 0) out[i] += sums[number - 1];
}

// A scan of any length: the sections, a block for each; then their sums, in the same way; then the
// additions. `sums` has room for the sums of all levels: n / kSection, n / kSection^2, ... kKernel
// is a kernel of this file, kSection what one of its blocks scans.
template <auto kKernel, int kSection>
void scan_sections(const float* in, float* out, std::size_t n, float* sums, cudaStream_t stream) {
    const std::size_t sections = course::ceil_div<std::size_t>(n, kSection);
    kKernel<<<course::blocks_for(sections, 1), kBlock, 0, stream>>>(in, out, n, sums);
    if (sections == 1) return;
    scan_sections<kKernel, kSection>(sums, sums, sections, sums + sections, stream);
    add_sums<<<course::blocks_for(n, kBlock), kBlock, 0, stream>>>(out, n, sums, kSection);
}

inline void launch_kogge_stone(const float* in, float* out, std::size_t n, float* sums, cudaStream_t stream) {
    scan_sections<kogge_stone, kBlock>(in, out, n, sums, stream);
}

// Idea: double buffering (as in the ladder). A step reads one array and writes the other.
// Cost removed: one of the two barriers.
// Still limits it: n log2 n additions, each with accesses to shared memory (counters at 2^28: 69 %
// busy; barriers take 15 % of the time of its warps).
__global__ void kogge_stone_double_buffer(const float* in, float* out, std::size_t n, float* sums) {
    __shared__ float buffers[2][kBlock];
    const unsigned t = threadIdx.x;
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + t;
    int from = 0;
    buffers[from][t] = i < n ? in[i] : 0.0f;
    for (unsigned stride = 1; stride < kBlock; stride *= 2) {
        __syncthreads();
        const float left = t >= stride ? buffers[from][t - stride] : 0.0f;
        buffers[1 - from][t] = buffers[from][t] + left;
        from = 1 - from;
    }
    if (i < n) out[i] = buffers[from][t];
    if (t == kBlock - 1) sums[blockIdx.x] = buffers[from][t];
}

inline void launch_kogge_stone_double_buffer(const float* in, float* out, std::size_t n, float* sums,
                                             cudaStream_t stream) {
    scan_sections<kogge_stone_double_buffer, kBlock>(in, out, n, sums, stream);
}

constexpr int kPairs = 2 * kBlock;  // elements of a section of brent_kung

// Idea: a tree of sums, as in day 15, then a second tree that adds each sum to the elements after
// it.
// Cost removed: most additions: 2 n instead of n log2 n. A thread has two elements.
// Still limits it: bank conflicts, because active threads access elements 2, 4, 8, ... apart.
// Counters at 2^28: shared memory 87 % busy; 225 of 479 million wavefronts are conflicts. Also, it
// takes twice as many steps, and in most of them few threads are active.
__global__ void brent_kung(const float* in, float* out, std::size_t n, float* sums) {
    __shared__ float values[kPairs];
    const unsigned t = threadIdx.x;
    const std::size_t first = std::size_t{blockIdx.x} * kPairs;
    for (unsigned k = t; k < kPairs; k += kBlock)
        values[k] = first + k < n ? in[first + k] : 0.0f;
    for (unsigned stride = 1; stride < kPairs; stride *= 2) {
        __syncthreads();
        const unsigned last = (t + 1) * 2 * stride - 1;  // of a group of 2 * stride elements
        if (last < kPairs) values[last] += values[last - stride];
    }
    for (unsigned stride = kPairs / 4; stride > 0; stride /= 2) {
        __syncthreads();
        const unsigned last = (t + 1) * 2 * stride - 1;
        if (last + stride < kPairs) values[last + stride] += values[last];
    }
    __syncthreads();
    for (unsigned k = t; k < kPairs; k += kBlock)
        if (first + k < n) out[first + k] = values[k];
    if (t == kBlock - 1) sums[blockIdx.x] = values[kPairs - 1];
}

inline void launch_brent_kung(const float* in, float* out, std::size_t n, float* sums, cudaStream_t stream) {
    scan_sections<brent_kung, kPairs>(in, out, n, sums, stream);
}

constexpr int kEach = 8;                    // elements of a thread of `coarsened`
constexpr int kCoarsened = kEach * kBlock;  // elements of its section

// Idea: three phases. A thread scans its 8 elements alone; the block scans the 256 sums; each
// thread adds the sum before its elements.
// Cost removed: barriers: 8 steps for 2048 elements. Only the 256 sums take n log2 n additions.
// Still limits it: adjacent threads are 8 elements apart in shared memory, which causes 8-way bank
// conflicts. Counters at 2^28: shared memory 86 % busy; 220 of 302 million wavefronts are
// conflicts.
__global__ void coarsened(const float* in, float* out, std::size_t n, float* sums) {
    __shared__ float values[kCoarsened];
    __shared__ float ends[kBlock];  // the sum of each thread's elements, then their scan
    const unsigned t = threadIdx.x;
    const std::size_t first = std::size_t{blockIdx.x} * kCoarsened;
    for (unsigned k = t; k < kCoarsened; k += kBlock)
        values[k] = first + k < n ? in[first + k] : 0.0f;
    __syncthreads();

    float* const mine = values + t * kEach;
    for (int k = 1; k < kEach; ++k)
        mine[k] += mine[k - 1];
    ends[t] = mine[kEach - 1];

    for (unsigned stride = 1; stride < kBlock; stride *= 2) {
        __syncthreads();
        const float left = t >= stride ? ends[t - stride] : 0.0f;
        __syncthreads();
        ends[t] += left;
    }
    __syncthreads();

    const float before = t > 0 ? ends[t - 1] : 0.0f;
    for (int k = 0; k < kEach; ++k)
        mine[k] += before;
    __syncthreads();
    for (unsigned k = t; k < kCoarsened; k += kBlock)
        if (first + k < n) out[first + k] = values[k];
    if (t == kBlock - 1) sums[blockIdx.x] = ends[t];
}

inline void launch_coarsened(const float* in, float* out, std::size_t n, float* sums, cudaStream_t stream) {
    scan_sections<coarsened, kCoarsened>(in, out, n, sums, stream);
}

// Idea: the lanes of a warp exchange registers; shared memory holds one sum for each warp
// (sum_before in block_scan.cuh).
// Cost removed: all barriers except one.
// Still limits it: latency, because a thread has a single element of 4 bytes. Counters at 2^28:
// issue slots 58 % busy, DRAM 41 %; 46 % of the time of its warps is spent on loads.
__global__ void warp_shuffle(const float* in, float* out, std::size_t n, float* sums) {
    const std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x;
    const float value = i < n ? in[i] : 0.0f;
    float total;
    const float before = sum_before(value, total);
    if (i < n) out[i] = before + value;
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

inline void launch_warp_shuffle(const float* in, float* out, std::size_t n, float* sums,
                                cudaStream_t stream) {
    scan_sections<warp_shuffle, kBlock>(in, out, n, sums, stream);
}

}  // namespace day16
