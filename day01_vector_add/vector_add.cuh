// Day 1: vector addition. c = a + b for n floats.       PMPP chapters 2 and 3 (4th and 5th edition)
//
//   version           what is new                              what limits it
//   one_per_element   one thread per element                   memory, 71 % busy: few bytes in flight
//   grid_stride       a fixed number of threads; each loops    memory, 75 % busy: 4-byte loads
//   float4            16 bytes per load and store              memory bandwidth
//
// Each addition reads 8 bytes and writes 4, so 12 n bytes / bandwidth is the best possible time.
//
//   ./course run day01                                 every version, verified and timed
//   ./course run day01 --program                       program.cu: one sum, from main() on
//   ./course inspect day01 --only one_per_element      sectors per load, line by line
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "common/device/grid.hpp"

namespace day01 {

// Idea: one thread per element. Adjacent threads take adjacent elements, so the 32 threads of a
// warp load 128 consecutive bytes.
// Cost removed: the loop of the CPU.
// Still limits it: few bytes in flight. A thread starts, adds once and ends, and the GPU starts a
// block per 256 elements. Counters: DRAM 71 % busy; an SM has 74 % of the warps that it can hold.
//
// Convert to size_t first: blockIdx.x * blockDim.x is a 32-bit product, which wraps at 2^32.
__global__ void add_one_per_element(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];  // the last block may have more threads than elements
}

constexpr int kBlockSize = 256;  // threads of a block

inline void launch_one_per_element(const float* a, const float* b, float* c, std::size_t n,
                                   cudaStream_t stream) {
    if (n == 0) return;                                         // a grid has at least one block
    const unsigned blocks = course::blocks_for(n, kBlockSize);  // n / kBlockSize, rounded up
    add_one_per_element<<<blocks, kBlockSize, 0, stream>>>(a, b, c, n);
}

// Idea: a grid-stride loop. The grid has as many threads as the GPU can hold at once; each adds its
// element, then the element one whole grid further on, and so on.
// Cost removed: starting a block per 256 elements. Any grid is right for any n.
// Still limits it: 4-byte loads, so few bytes are in flight. Counters: DRAM 75 % busy, although an
// SM has 98 % of the warps that it can hold.
__global__ void add_grid_stride(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;  // threads of the grid
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        c[i] = a[i] + b[i];
}

inline void launch_grid_stride(const float* a, const float* b, float* c, std::size_t n, cudaStream_t stream) {
    if (n == 0) return;
    const unsigned needed = course::blocks_for(n, kBlockSize);
    // As many as the data needs, but no more than the GPU can hold at once.
    const unsigned blocks = std::min(needed, course::resident_blocks(add_grid_stride, kBlockSize));
    add_grid_stride<<<blocks, kBlockSize, 0, stream>>>(a, b, c, n);
}

// Idea: a thread adds four adjacent elements. A float4 is loaded by one 16-byte instruction.
// Cost removed: three of four loads and stores. Four times as many bytes in flight per thread.
// Still limits it: memory bandwidth. Counters: DRAM 92 % busy.
//
// The addresses must be multiples of 16 bytes, which the host file checks. The one to three
// elements after the last whole float4 are added one by one, by the first threads of the grid.
__global__ void add_float4(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t packs = n / 4;  // whole float4s
    if (i < packs) {
        const float4 x = reinterpret_cast<const float4*>(a)[i];
        const float4 y = reinterpret_cast<const float4*>(b)[i];
        reinterpret_cast<float4*>(c)[i] = {x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w};
    }
    const std::size_t tail = 4 * packs + i;
    if (tail < n) c[tail] = a[tail] + b[tail];
}

inline void launch_float4(const float* a, const float* b, float* c, std::size_t n, cudaStream_t stream) {
    if (n == 0) return;
    const unsigned blocks = course::blocks_for(course::ceil_div<std::size_t>(n, 4), kBlockSize);
    add_float4<<<blocks, kBlockSize, 0, stream>>>(a, b, c, n);
}

}  // namespace day01
