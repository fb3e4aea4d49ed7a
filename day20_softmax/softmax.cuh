// Day 20: softmax of one row, y[i] = exp(x[i] - max) / sum of all exp(x[j] - max).
//
//   version         kernels   passes over the data     what limits it
//   five_kernels    5         5 reads, 3 writes        every kernel rereads what the last one wrote
//   three_kernels   3         3 reads, 2 writes        the maximum is found in a pass of its own
//   online          2         2 reads, 1 write         the row is read a second time
//
// Moreover, in each of these simple loops a thread has one 4-byte load in flight. So all versions
// are latency-bound at 2^22 elements, which L2 holds (counters: L2 and memory at most 63 % busy).
//
// An element must be read once and written once, so 8 n bytes / (memory bandwidth) is the best
// possible time. Day 21 needs only one read, because it keeps a row in registers.
//
// A maximum or a sum of the whole row is known only when all blocks have finished. But blocks
// cannot wait for each other, so this is certain only at the end of a kernel. Therefore each block
// stores the result of its elements in global memory (a part), and every block of the next kernel
// first reduces all parts. The launch of a version follows its last kernel.
//
//   ./course run day20                          every version, verified and timed
//   ./course run day20 --program                program.cu: one row, from main() to the result
//   ./course run day20 --only online --size 4194304
//   ./course inspect day20 --only five_kernels
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/device/block_reduce.cuh"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "max_sum.hpp"

namespace day20 {

// Threads of a block. The loops over the row use blockDim.x: with a constant in its place, nvcc
// computes the step again in each iteration, up to three instructions more.
constexpr int kBlock = 256;
constexpr std::size_t kMostParts = 1024;  // few enough for every block to reduce all of them

// The size of the grid, one block per part: four elements per thread, until there are kMostParts
// blocks.
inline int parts_of(std::size_t n) {
    return static_cast<int>(std::min(kMostParts, course::ceil_div<std::size_t>(n, 4 * kBlock)));
}

// Idea: one kernel for each operation: maximum, difference, exponential, sum, quotient.
// Cost removed: none yet.
// Still limits it: eight passes. Each kernel reads what the kernel before it wrote, for one
// operation per element, with one 4-byte load in flight per thread: in all five the warps spend 67
// % or more of their time on loads (counters at 2^22).
//
// First kernel: the largest element of each block's share. n may be anything: a thread has the
// element at its global index, then the one a whole grid further on, and so on.
__global__ void part_maxima(const float* x, float* maxima, std::size_t n) {
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    float max = -INFINITY;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
        max = fmaxf(max, x[i]);
    max = course::block_reduce<kBlock>(max, course::Max{});
    if (threadIdx.x == 0) maxima[blockIdx.x] = max;
}

// The largest of `count` values in global memory, in every thread. All threads of the block call
// it.
__device__ inline float max_of_parts(const float* maxima, int count) {
    float max = -INFINITY;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kBlock)
        max = fmaxf(max, maxima[i]);
    return course::block_reduce<kBlock>(max, course::Max{});
}

// Second kernel.
__global__ void subtract_maximum(const float* x, float* y, const float* maxima, int count, std::size_t n) {
    const float max = max_of_parts(maxima, count);
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
        y[i] = x[i] - max;
}

// exp(x - shift) as 2^((x - shift) log2(e)): a GPU has an instruction for powers of two.
// x log2(e) - shift log2(e) would be a single multiply-add, but it overflows from 2.4e38 on.
__device__ inline float exponential(float x, float shift) {
    constexpr float kLog2OfE = 1.44269504f;
    return exp2f((x - shift) * kLog2OfE);
}

// Third kernel. The maximum has already been subtracted.
__global__ void exponentiate(float* y, std::size_t n) {
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
        y[i] = exponential(y[i], 0);
}

// Fourth kernel.
__global__ void part_sums(const float* y, float* sums, std::size_t n) {
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    float sum = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
        sum += y[i];
    sum = course::block_reduce<kBlock>(sum, course::Sum{});
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// The sum of `count` values in global memory, in every thread. All threads of the block call it.
__device__ inline float sum_of_parts(const float* sums, int count) {
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kBlock)
        sum += sums[i];
    return course::block_reduce<kBlock>(sum, course::Sum{});
}

// Fifth kernel. One division per thread; the elements are multiplied.
__global__ void divide_by_sum(float* y, const float* sums, int count, std::size_t n) {
    const float factor = 1 / sum_of_parts(sums, count);
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
        y[i] *= factor;
}

// n > 0; `maxima` and `sums` have room for parts_of(n) floats each. y may be x.
inline void launch_five_kernels(const float* x, float* y, float* maxima, float* sums, std::size_t n,
                                cudaStream_t stream) {
    const int parts = parts_of(n);
    part_maxima<<<parts, kBlock, 0, stream>>>(x, maxima, n);
    subtract_maximum<<<parts, kBlock, 0, stream>>>(x, y, maxima, parts, n);
    exponentiate<<<parts, kBlock, 0, stream>>>(y, n);
    part_sums<<<parts, kBlock, 0, stream>>>(y, sums, n);
    divide_by_sum<<<parts, kBlock, 0, stream>>>(y, sums, parts, n);
}

// Idea: fuse the three kernels in the middle. Difference, exponential and sum of an element are
// computed in a register. part_maxima runs before this kernel, divide_by_sum after it.
// Cost removed: two reads and one write of the whole row.
// Still limits it: five passes, each latency-bound. The maximum must be known before the first
// exponential.
__global__ void exponentials_and_sums(const float* x, float* y, const float* maxima, float* sums, int count,
                                      std::size_t n) {
    const float max = max_of_parts(maxima, count);
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    float sum = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
        const float e = exponential(x[i], max);
        y[i] = e;
        sum += e;
    }
    sum = course::block_reduce<kBlock>(sum, course::Sum{});
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

inline void launch_three_kernels(const float* x, float* y, float* maxima, float* sums, std::size_t n,
                                 cudaStream_t stream) {
    const int parts = parts_of(n);
    part_maxima<<<parts, kBlock, 0, stream>>>(x, maxima, n);
    exponentials_and_sums<<<parts, kBlock, 0, stream>>>(x, y, maxima, sums, parts, n);
    divide_by_sum<<<parts, kBlock, 0, stream>>>(y, sums, parts, n);
}

// What is subtracted where the maximum of a part is `max`. A part may be -Inf throughout, or have
// no elements, while other parts are finite. -Inf - (-Inf) would be NaN and spoil the sum of the
// row, whereas -Inf - 0 gives exp(-Inf) = 0. If the whole row is -Inf, its sum is 0, and 0 * (1 /
// 0) gives NaN, as it should.
__device__ inline float shift_of(float max) {
    return max == -INFINITY ? 0.0f : max;
}

// Merges two parts of a row: both sums are rescaled to the larger maximum. MaxSum (max_sum.hpp) is
// the maximum of a part and the sum of its exp(x - maximum).
__device__ inline MaxSum merge(MaxSum a, MaxSum b) {
    const float max = fmaxf(a.max, b.max);
    const float shift = shift_of(max);
    return {max, a.sum * exponential(a.max, shift) + b.sum * exponential(b.max, shift)};
}

// Merges the parts of the 32 lanes of a warp, with the result in every lane: first the maximum,
// then one exponential per lane.
__device__ inline MaxSum warp_merge(MaxSum part) {
    const float max = course::warp_reduce(part.max, course::Max{});
    return {max, course::warp_reduce(part.sum * exponential(part.max, shift_of(max)), course::Sum{})};
}

// A part without elements: merging it with another part changes nothing.
__device__ inline MaxSum nothing() {
    return {-INFINITY, 0};
}

// Merges the parts of all threads of a block, with the result in every thread. All threads call it.
__device__ inline MaxSum block_merge(MaxSum part) {
    constexpr int kWarps = kBlock / course::kWarpSize;
    __shared__ MaxSum of_warp[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    part = warp_merge(part);
    if (lane == 0) of_warp[threadIdx.x / course::kWarpSize] = part;
    __syncthreads();
    return warp_merge(lane < kWarps ? of_warp[lane] : nothing());
}

// Idea: maximum and sum in one pass (online softmax). Each thread keeps a running maximum and a sum
// relative to it, and rescales the sum when the maximum grows.
// Cost removed: the pass for the maximum, and storing the exponentials, which are computed again.
// Still limits it: latency. The second kernel reads the row again, and a thread has one 4-byte load
// in flight. Counters at 2^22: ALU 52 % busy, special functions 34 %; the warps spend 47 % of their
// time on loads.
__global__ void part_maxima_and_sums(const float* x, MaxSum* parts, std::size_t n) {
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    MaxSum part = nothing();
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
        part = merge(part, {x[i], 1});
    part = block_merge(part);
    if (threadIdx.x == 0) parts[blockIdx.x] = part;
}

// The last kernel of `online`. With the pair (maximum, sum) both outputs are one step away:
// softmax is exp(x - max) / sum, log-softmax is (x - max) - log(sum).
template <Output kOutput>
__global__ void normalise(const float* x, float* y, const MaxSum* parts, int count, std::size_t n) {
    MaxSum row = nothing();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kBlock)
        row = merge(row, parts[i]);
    row = block_merge(row);

    const float shift = shift_of(row.max);
    const float factor = 1 / row.sum;
    const float log_of_sum = logf(row.sum);
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
        y[i] = kOutput == Output::kSoftmax ? exponential(x[i], shift) * factor : (x[i] - shift) - log_of_sum;
}

// `of_parts` has room for parts_of(n) pairs.
template <Output kOutput>
void launch_online(const float* x, float* y, MaxSum* of_parts, std::size_t n, cudaStream_t stream) {
    const int parts = parts_of(n);
    part_maxima_and_sums<<<parts, kBlock, 0, stream>>>(x, of_parts, n);
    normalise<kOutput><<<parts, kBlock, 0, stream>>>(x, y, of_parts, parts, n);
}

}  // namespace day20
