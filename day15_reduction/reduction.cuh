// Day 15: reduction. n numbers become one.                 PMPP chapter 10 (4th and 5th edition)
//
//   version         what is new                               what limits it
//   interleaved     a tree over adjacent pairs                a tree and an atomic per 256 elements; L2
//   sequential      pairs half the values apart               latency: tree and atomic per 256 elements
//   shared_memory   the tree is in shared memory              latency: tree and atomic per 256 elements
//   coarsened       each thread first sums many elements      one 4-byte load in flight per thread
//   shuffle         warps reduce in registers                 one 4-byte load in flight per thread
//   vectorised      16-byte loads, eight in flight            memory bandwidth
//
// Every element is read once, so n * sizeof(float) / (read bandwidth) is the best possible time.
// The kernels here add floats. Each block loops over pieces of the input, so n may be anything.
// Each kernel is followed by its launch, where `blocks` is the size of the grid; 0: the launch
// chooses. beyond/ has a sum in one launch, and one with the same bits everywhere.
//
//   ./course run day15                                   every version, verified and timed
//   ./course run day15 --program                         program.cu: one sum, from main() to the result
//   ./course inspect day15 --only interleaved            how many lanes work, line by line
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"

namespace day15 {

constexpr int kBlock = 256;              // threads of a block
constexpr unsigned kLargestGrid = 4096;  // in blocks: `scratch` has room for as many

// The size of the grid: `blocks` or, if that is 0, a block for each `piece` elements, at least 1
// and at most `most`. With fewer blocks than pieces, each block takes several pieces.
inline unsigned grid_size(unsigned blocks, std::size_t n, int piece, unsigned most) {
    if (blocks > 0) return blocks;
    const auto pieces = course::ceil_div(n, static_cast<std::size_t>(piece));
    return static_cast<unsigned>(std::clamp<std::size_t>(pieces, 1, std::min(most, kLargestGrid)));
}

// Idea: a tree. On each level, pairs of adjacent values become one: 256 values in 8 steps, not 255.
// Cost removed: the chain of n - 1 dependent additions.
// Still limits it: L2, where every level goes (counters: 63 % busy), and one atomic per 256
// elements. From the second level on, most lanes of every warp are idle, and a warp takes as long
// for one active lane as for 32. At 2^28 elements this is hidden (28 % of the issue slots): see the
// README.
//
// A block takes kBlock elements at a time. `in` must not be overwritten, so the tree is built in
// `scratch`, which has kBlock values for every block.
__global__ void reduce_interleaved(const float* in, std::size_t n, float* out, float* scratch) {
    float* values = scratch + std::size_t{blockIdx.x} * kBlock;
    const unsigned t = threadIdx.x;
    const std::size_t step = std::size_t{gridDim.x} * kBlock;
    for (std::size_t first = std::size_t{blockIdx.x} * kBlock; first < n; first += step) {
        values[t] = first + t < n ? in[first + t] : 0.0f;
        for (unsigned stride = 1; stride < kBlock; stride *= 2) {
            __syncthreads();  // the level below is complete
            if (t % (2 * stride) == 0) values[t] += values[t + stride];
        }
        if (t == 0) atomicAdd(out, values[0]);
        __syncthreads();  // all reads are done before the next elements overwrite values
    }
}

inline void launch_interleaved(const float* in, std::size_t n, float* out, float* scratch, unsigned blocks,
                               cudaStream_t stream) {
    const unsigned grid = grid_size(blocks, n, kBlock, kLargestGrid);
    cudaMemsetAsync(out, 0, sizeof(float), stream);  // the atomics add to *out
    reduce_interleaved<<<grid, kBlock, 0, stream>>>(in, n, out, scratch);
}

// Idea: the same number of additions, but the partner is half the values away. The active threads
// are then the first ones: 128, 64, 32, ...
// Cost removed: divergence. All lanes of a warp are active or none is, until one warp is left.
// Still limits it: latency. Every level reads and writes global memory; one atomic per 256 elements
// (counters: L1 42 % busy, L2 34 %; warps spend 64 % of their time on loads, 26 % at barriers).
__global__ void reduce_sequential(const float* in, std::size_t n, float* out, float* scratch) {
    float* values = scratch + std::size_t{blockIdx.x} * kBlock;
    const unsigned t = threadIdx.x;
    const std::size_t step = std::size_t{gridDim.x} * kBlock;
    for (std::size_t first = std::size_t{blockIdx.x} * kBlock; first < n; first += step) {
        values[t] = first + t < n ? in[first + t] : 0.0f;
        for (unsigned stride = kBlock / 2; stride > 0; stride /= 2) {
            __syncthreads();
            if (t < stride) values[t] += values[t + stride];
        }
        if (t == 0) atomicAdd(out, values[0]);
        __syncthreads();
    }
}

inline void launch_sequential(const float* in, std::size_t n, float* out, float* scratch, unsigned blocks,
                              cudaStream_t stream) {
    const unsigned grid = grid_size(blocks, n, kBlock, kLargestGrid);
    cudaMemsetAsync(out, 0, sizeof(float), stream);
    reduce_sequential<<<grid, kBlock, 0, stream>>>(in, n, out, scratch);
}

// Idea: the tree is in shared memory.
// Cost removed: the round trip to global memory on each level.
// Still limits it: per 256 elements one tree, with nine barriers and six levels in which only one
// warp is active, and one atomic. Counters: warps spend 38 % of their time at barriers and 47 %
// waiting for their load; no unit is above 42 %.
__global__ void reduce_shared_memory(const float* in, std::size_t n, float* out) {
    __shared__ float values[kBlock];
    const unsigned t = threadIdx.x;
    const std::size_t step = std::size_t{gridDim.x} * kBlock;
    for (std::size_t first = std::size_t{blockIdx.x} * kBlock; first < n; first += step) {
        values[t] = first + t < n ? in[first + t] : 0.0f;
        for (unsigned stride = kBlock / 2; stride > 0; stride /= 2) {
            __syncthreads();
            if (t < stride) values[t] += values[t + stride];
        }
        if (t == 0) atomicAdd(out, values[0]);
        __syncthreads();
    }
}

inline void launch_shared_memory(const float* in, std::size_t n, float* out, unsigned blocks,
                                 cudaStream_t stream) {
    // As many blocks as the GPU can hold at once: more would only wait.
    const unsigned grid = grid_size(blocks, n, kBlock, course::resident_blocks(reduce_shared_memory, kBlock));
    cudaMemsetAsync(out, 0, sizeof(float), stream);
    reduce_shared_memory<<<grid, kBlock, 0, stream>>>(in, n, out);
}

// Idea: thread coarsening. Each thread adds its share of the input in a register; only then does
// the block build one tree.
// Cost removed: all trees and atomics except one per block.
// Still limits it: latency. A thread has one 4-byte load in flight, because each is used before the
// next is issued. Counters: DRAM 54 % busy; 93 % of the warps' time is spent on loads.
__global__ void reduce_coarsened(const float* in, std::size_t n, float* out) {
    __shared__ float values[kBlock];
    const unsigned t = threadIdx.x;
    const std::size_t step = std::size_t{gridDim.x} * kBlock;
    float sum = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * kBlock + t; i < n; i += step)
        sum += in[i];

    values[t] = sum;
    for (unsigned stride = kBlock / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (t < stride) values[t] += values[t + stride];
    }
    if (t == 0) atomicAdd(out, values[0]);
}

inline void launch_coarsened(const float* in, std::size_t n, float* out, unsigned blocks,
                             cudaStream_t stream) {
    const unsigned grid = grid_size(blocks, n, kBlock, course::resident_blocks(reduce_coarsened, kBlock));
    cudaMemsetAsync(out, 0, sizeof(float), stream);
    reduce_coarsened<<<grid, kBlock, 0, stream>>>(in, n, out);
}

constexpr int kWarpSize = 32;
constexpr int kWarps = kBlock / kWarpSize;  // of a block
constexpr unsigned kWholeWarp = 0xffffffff;

// The sum of 32 values, one per lane, in every lane. Each step adds the value of the lane whose
// number differs in one bit.
__device__ inline float warp_sum(float value) {
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(kWholeWarp, value, distance);
    return value;
}

// The sum of one value per thread of the block; thread 0 gets it. All threads call it.
__device__ inline float block_sum(float value) {
    __shared__ float of_warp[kWarps];  // the sum of each warp
    const unsigned lane = threadIdx.x % kWarpSize;
    const unsigned warp = threadIdx.x / kWarpSize;
    value = warp_sum(value);
    __syncthreads();  // an earlier call has finished reading of_warp
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();  // all sums are written
    if (warp == 0) value = warp_sum(lane < kWarps ? of_warp[lane] : 0.0f);
    return value;
}

// Idea: the lanes of a warp exchange registers with __shfl_xor_sync.
// Cost removed: shared memory and barriers on all levels except one. At 2^28 elements that gains
// nothing.
// Still limits it: one 4-byte load in flight per thread. Counters as before: DRAM 54 % busy.
__global__ void reduce_shuffle(const float* in, std::size_t n, float* out) {
    const std::size_t step = std::size_t{gridDim.x} * kBlock;
    float sum = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x; i < n; i += step)
        sum += in[i];

    sum = block_sum(sum);
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

inline void launch_shuffle(const float* in, std::size_t n, float* out, unsigned blocks, cudaStream_t stream) {
    const unsigned grid = grid_size(blocks, n, kBlock, course::resident_blocks(reduce_shuffle, kBlock));
    cudaMemsetAsync(out, 0, sizeof(float), stream);
    reduce_shuffle<<<grid, kBlock, 0, stream>>>(in, n, out);
}

constexpr int kLoads = 8;                   // float4 loads of a thread before it uses the first
constexpr int kTile = kBlock * kLoads * 4;  // floats of a tile, which a block reads in one pass
constexpr int kBlocksPerSm = 4;             // leaves 64 registers to a thread: room for the loads

// The sum of this thread's share of the tiles blockIdx.x, blockIdx.x + gridDim.x, ... Load k of
// thread t reads float4 number k * kBlock + t of the tile, so a warp reads 512 consecutive bytes.
__device__ inline float sum_tiles(const float* in, std::size_t n) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(in) % sizeof(float4) == 0;
    const std::size_t step = std::size_t{gridDim.x} * kTile;
    float4 sums = {0, 0, 0, 0};  // four sums: their additions are independent
    for (std::size_t tile = std::size_t{blockIdx.x} * kTile; tile < n; tile += step) {
        const std::size_t first = tile + threadIdx.x * 4;  // the first float of this thread
        float4 loaded[kLoads];
        if (aligned && tile + kTile <= n) {
#pragma unroll
            for (int k = 0; k < kLoads; ++k)
                loaded[k] = *reinterpret_cast<const float4*>(in + first + k * kBlock * 4);
        } else {  // float by float, with a bounds check
            const auto load = [=](std::size_t i) { return i < n ? in[i] : 0.0f; };
#pragma unroll
            for (int k = 0; k < kLoads; ++k) {
                const std::size_t i = first + k * kBlock * 4;
                loaded[k] = {load(i), load(i + 1), load(i + 2), load(i + 3)};
            }
        }
#pragma unroll
        for (int k = 0; k < kLoads; ++k) {
            sums.x += loaded[k].x;
            sums.y += loaded[k].y;
            sums.z += loaded[k].z;
            sums.w += loaded[k].w;
        }
    }
    return sums.x + sums.y + sums.z + sums.w;
}

// Idea: loads of 16 bytes, and eight of them issued before the first is used.
// Cost removed: three of four load instructions, and the stall after each load.
// Still limits it: memory bandwidth (counters: 96 % busy). Also, the order of additions depends on
// which block finishes first.
__global__ void __launch_bounds__(kBlock, kBlocksPerSm)
    reduce_vectorised(const float* in, std::size_t n, float* out) {
    const float sum = block_sum(sum_tiles(in, n));
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

inline void launch_vectorised(const float* in, std::size_t n, float* out, unsigned blocks,
                              cudaStream_t stream) {
    const unsigned grid = grid_size(blocks, n, kTile, course::resident_blocks(reduce_vectorised, kBlock));
    cudaMemsetAsync(out, 0, sizeof(float), stream);
    reduce_vectorised<<<grid, kBlock, 0, stream>>>(in, n, out);
}

}  // namespace day15
