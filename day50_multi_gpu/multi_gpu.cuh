// Day 50: one grid on several GPUs.          PMPP chapter 20 (4th edition), chapter 23 (5th edition)
//
//   version               what is new                              what limits it
//   one_gpu               the whole grid on one GPU                its memory and its bandwidth
//   peer_copy             a slab for each GPU, ghost planes        the copies wait for the sweep, the
//                         copied from GPU to GPU                   next sweep for the copies
//   peer_copy_overlapped  the edges of a slab first; their copies  small grids: launches, events,
//                         run beside the sweep of the middle       copies
//   nccl                  send and receive, as between nodes       as peer_copy; a kernel does the
//                                                                  copying
//   nccl_overlapped       the same beside the sweep of the middle  as peer_copy_overlapped
//   direct_stores         the sweep itself writes the neighbour's  small grids: launches and events
//                         ghost planes
//
// Both kernels are here, each followed by its launch. multi_gpu.cu, the other half of the lesson,
// has the versions: which GPU does what, and in which order. slab.cuh describes how a rank's part
// of the grid lies in memory: read it first. beyond/ has one graph or one kernel for all steps, a
// method that stops by itself, and several processes.
//
//   ./course run day50                                     every version, verified and timed
//   CUDA_ON_CPU_DEVICES=4 ./course run day50               on four devices of the stand-in
//   ./course run day50 --program                           program.cu: from main() to the result
// Not #pragma once: a learner's copy may meet this file, by way of beyond/persistent.cuh.
#ifndef DAY50_MULTI_GPU_CUH
#define DAY50_MULTI_GPU_CUH

#include <cuda_runtime.h>

#include "slab.cuh"

namespace day50 {

constexpr int kCols = 32;  // cells of a block along x
constexpr int kRows = 8;   // and along y
constexpr int kDepth = 8;  // and along z; a thread computes all kDepth of them

// The weighted mean of the 25 points. A cell within kRadius of an edge of the whole grid keeps its
// value.
__device__ inline float new_value(const float* in, const Local& local, const Weights& weights, int x, int y,
                                  int z) {
    const std::size_t i = local.index(x, y, z);
    const int global_z = local.first + z;
    if (x < kRadius || x >= local.nx - kRadius || y < kRadius || y >= local.ny - kRadius ||
        global_z < kRadius || global_z >= local.nz - kRadius)
        return in[i];
    float sum = weights.centre * in[i];
    for (int d = 1; d <= kRadius; ++d) {
        const std::size_t row = static_cast<std::size_t>(d) * local.nx;
        const std::size_t plane = d * local.plane();
        sum = fmaf(weights.at[d - 1], in[i - d] + in[i + d], sum);
        sum = fmaf(weights.at[d - 1], in[i - row] + in[i + row], sum);
        sum = fmaf(weights.at[d - 1], in[i - plane] + in[i + plane], sum);
    }
    return sum;
}

// Idea: a sweep over the planes from `begin` to `end` - 1. A thread computes kDepth cells along z.
// Its next cell needs eight of the nine cells that it reads along z as well, and they are still in
// the L1 cache.
// Cost removed: none. This is the sweep of a GPU over its part of the grid.
// Still limits it: 25 loads per cell, most of them from a cache. Day 11 has faster sweeps; this day
// is about the work between them.
__global__ void sweep(const float* in, float* out, Local local, Weights weights, int begin, int end) {
    const int x = static_cast<int>(blockIdx.x) * kCols + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kRows + static_cast<int>(threadIdx.y);
    const int first = begin + static_cast<int>(blockIdx.z) * kDepth;
    if (x >= local.nx || y >= local.ny) return;
    for (int z = first; z < min(first + kDepth, end); ++z)
        out[local.index(x, y, z)] = new_value(in, local, weights, x, y, z);
}

// Blocks for `planes` planes of a rank.
inline dim3 blocks_for_planes(const Local& local, int planes) {
    return dim3((local.nx + kCols - 1) / kCols, (local.ny + kRows - 1) / kRows,
                (planes + kDepth - 1) / kDepth);
}

// `stream` belongs to the current device, in whose memory `in` and `out` are.
inline void launch_sweep(const float* in, float* out, const Local& local, int begin, int end,
                         cudaStream_t stream) {
    sweep<<<blocks_for_planes(local, end - begin), dim3(kCols, kRows), 0, stream>>>(in, out, local, kWeights,
                                                                                    begin, end);
}

// Sweeps the cells of one x and y in the planes from `begin` to `end` - 1. The value of a cell in
// an edge plane is stored twice: here, and in the ghost planes of the neighbour that needs it. In a
// thin slab, a plane may be an edge on both sides.
__device__ inline void sweep_column(const float* in, float* out, const Local& local, const Weights& weights,
                                    const Neighbours& to, int x, int y, int begin, int end) {
    const int last_edge = local.planes - kRadius;  // its first plane
    const bool sends_down = to.below != nullptr && begin < kRadius;
    const bool sends_up = to.above != nullptr && end > last_edge;
    const std::size_t cell = static_cast<std::size_t>(y) * local.nx + x;
    for (int z = begin; z < end; ++z) {
        const float value = new_value(in, local, weights, x, y, z);
        out[local.index(x, y, z)] = value;
        if (sends_down && z < kRadius) to.below[z * local.plane() + cell] = value;
        if (sends_up && z >= last_edge) to.above[(z - last_edge) * local.plane() + cell] = value;
    }
}

// Which of the `count` parts of a slab does block `number` sweep? Blocks start about in the order
// of their numbers. The last part comes second, so that both edges are sent while the middle is
// swept.
__device__ inline int edges_first(int number, int count) {
    if (number == 0) return 0;
    return number == 1 ? count - 1 : number - 1;
}

// Idea: peer access. A kernel can store to another GPU's memory as to its own, so it stores each
// edge cell there at once.
// Cost removed: reading the edge planes again, the calls that copy them, and separate launches for
// the edges.
// Still limits it: the host launches each step, and events order the steps of neighbours.
__global__ void sweep_and_store(const float* in, float* out, Local local, Weights weights, Neighbours to) {
    const int x = static_cast<int>(blockIdx.x) * kCols + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kRows + static_cast<int>(threadIdx.y);
    const int first = edges_first(static_cast<int>(blockIdx.z), static_cast<int>(gridDim.z)) * kDepth;
    if (x >= local.nx || y >= local.ny) return;
    sweep_column(in, out, local, weights, to, x, y, first, min(first + kDepth, local.planes));
}

// The planes of `to` are in the memory of other GPUs.
inline void launch_sweep_and_store(const float* in, float* out, const Local& local, const Neighbours& to,
                                   cudaStream_t stream) {
    sweep_and_store<<<blocks_for_planes(local, local.planes), dim3(kCols, kRows), 0, stream>>>(in, out, local,
                                                                                               kWeights, to);
}

}  // namespace day50

#endif
