// Day 1: vector addition, c = a + b for n floats.                                    PMPP chapters 2 and 3
//
//   version           a thread adds                          what limits it
//   one_per_element   one element                            instructions and blocks: little work each
//   grid_stride       every (number of threads)-th element   4-byte accesses: many requests for few bytes
//   float4            four neighbours at a time              memory: 12 bytes must move for every addition
//
// Each reads 8 and writes 4 bytes for one addition, so the best possible time is 12 n bytes / (memory bandwidth).
//
//   ./course run day01                       all versions, verified and timed
//   ./course run day01 --variant float4 --size 268435456
#pragma once

#include <cstddef>

#include "common/device/pack.cuh"

namespace day01 {
namespace {

using Float4 = course::Pack<float, 4>;

// The number of this thread among all threads of the grid. size_t before the product: more than 2^24 blocks of 256 threads
// are more than 32 bits can count.
__device__ std::size_t global_thread() {
    return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Idea: as many threads as elements; neighbouring threads take neighbouring elements, so a warp reads 128 bytes in a row.
// Cost removed: the loop of the CPU.
// Still limits it: a thread starts, adds once and is gone, and the grid must fit the data.
__global__ void add_one_per_element(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t i = global_thread();
    if (i < n) c[i] = a[i] + b[i];
}

// Idea: as many threads as the GPU can hold at once; each goes on one whole grid further.
// Cost removed: starting a block for every 256 elements; any grid is right for any n.
// Still limits it: every access moves 4 bytes per thread, and each step of the loop waits for the one before.
__global__ void add_grid_stride(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = global_thread(); i < n; i += stride)
        c[i] = a[i] + b[i];
}

// Idea: 16 bytes per access. The pointers must be multiples of 16; up to three elements are left for single threads.
// Cost removed: three of four load and store instructions; four times the bytes in flight per thread.
// Still limits it: memory itself.
__global__ void add_float4(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t i = global_thread();
    const std::size_t packs = n / 4;
    if (i < packs) {
        const Float4 x = Float4::load(a + 4 * i);
        const Float4 y = Float4::load(b + 4 * i);
        Float4 sum;
        for (int k = 0; k < 4; ++k)
            sum.value[k] = x.value[k] + y.value[k];
        sum.store(c + 4 * i);
    }
    const std::size_t tail = 4 * packs + i;
    if (tail < n) c[tail] = a[tail] + b[tail];
}

}  // namespace
}  // namespace day01
