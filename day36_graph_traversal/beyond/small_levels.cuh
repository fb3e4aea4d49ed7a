// Day 36, beyond: levels that end without the host.
//
//   version        what is new                                 what limits it
//   single_block   small levels in one block, no launch each   large levels: as before
//   cooperative    all levels in one launch (5e, figure 18.17) a hub is the work of one thread
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "graph_traversal.cuh"
#include "graph_traversal.hpp"
#include "resident.hpp"

namespace day36 {

constexpr unsigned kFewVertices = 1024;

// Idea: a frontier of up to 1,024 vertices is too small for a GPU, but not for one block. The block
// continues with the next level after its own barrier, for as long as frontiers are small.
// Cost removed: the launch and the copy of each small level.
// Still limits it: barriers (counters: 97 % of the time of its warps). Large levels still go
// through the host, one by one. One block cannot use the whole bandwidth.
__global__ void __launch_bounds__(kFewVertices)
    single_block(Rows out, Vertex* queue, Progress* progress, unsigned* level, Vertex* parent) {
    __shared__ unsigned tail;
    unsigned current = progress->level;
    unsigned begin = progress->begin;
    unsigned end = progress->end;
    if (threadIdx.x == 0) tail = end;
    while (begin < end && end - begin <= kFewVertices) {
        ++current;
        __syncthreads();  // the tail is set, and all have read it
        if (threadIdx.x < end - begin) {
            const Vertex v = queue[begin + threadIdx.x];
            for (unsigned e = out.offsets[v]; e < out.offsets[v + 1]; ++e) {
                const Vertex neighbour = out.neighbours[e];
                if (!claim(level, neighbour, current)) continue;
                parent[neighbour] = v;
                queue[atomicAdd(&tail, 1u)] = neighbour;
            }
        }
        __syncthreads();  // the next frontier is complete
        begin = end;
        end = tail;
    }
    if (threadIdx.x == 0) *progress = {.level = current, .begin = begin, .end = end, .edges = 0, .turn = 0};
}

inline void launch_single_block(const Rows& out, Vertex* queue, Progress* progress, unsigned* level,
                                Vertex* parent, cudaStream_t stream) {
    single_block<<<1, kFewVertices, 0, stream>>>(out, queue, progress, level, parent);
}

// Idea: a cooperative launch. All blocks are resident at the same time, so they can wait for each
// other: a barrier of the grid ends a level, not the end of the kernel.
// Cost removed: the launches, and the host.
// Still limits it: barriers (counters: 87 % of the time of its warps). A thread reads the whole
// list of its vertex, so a hub with a million neighbours keeps the grid waiting.
//
// Three counters take turns. Level `current` adds to found[current % 3] and clears the next one,
// which no thread still reads: all threads read it at the end of level current - 2, and the barrier
// of level current - 1 came after that.
__global__ void cooperative(Rows out, Vertex source, Vertex* queue, unsigned* level, Vertex* parent,
                            unsigned* found) {
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    for (Vertex v = global_thread(); v < out.vertices; v += gridDim.x * blockDim.x) {
        level[v] = v == source ? 0 : kUnreached;
        parent[v] = v == source ? source : kUnreached;
    }
    if (global_thread() == 0) {
        queue[0] = source;
        found[1] = 0;
    }
    grid.sync();
    unsigned begin = 0;
    unsigned end = 1;
    for (unsigned current = 1; begin < end; ++current) {
        if (global_thread() == 0) found[(current + 1) % 3] = 0;
        expand_privatised(out, queue, begin, end, current, level, parent, &found[current % 3]);
        grid.sync();
        begin = end;
        end += found[current % 3];
    }
}

inline void launch_cooperative(const Rows& out, Vertex source, Vertex* queue, unsigned* level, Vertex* parent,
                               unsigned* found, cudaStream_t stream) {
    launch_resident(cooperative, kBlock, stream, out, source, queue, level, parent, found);
}

}  // namespace day36
