// Day 36: breadth-first search.             PMPP chapter 15 (4th edition), chapter 18 (5th edition)
//
//   version              what is new                                 what limits it
//   push                 a thread per vertex, which looks for        latency: the thread that has a hub;
//                        neighbours                                  without hubs, all levels are read
//   pull                 a thread per vertex, which looks for a      the same; long lists without a
//                        parent                                      vertex of the frontier
//   edge_centric         a thread per edge                           latency: each launch reads all edges
//   direction_simple     push, then pull when the frontier is large  latency, as push
//   frontier             a queue: a thread per vertex of it          latency: an atomic per vertex found
//   frontier_privatised  a queue of each block in shared memory      barriers: a block waits for its hub
//
// A search writes two words per vertex, its level and its parent. The versions differ in what they
// read: all vertices in each level, all edges once, or only a part of the edges. Each kernel is
// followed by its launch, which queues one level. The host launches levels until `found` stays 0.
// beyond/ has small levels without the host, hubs in pieces, bitmaps, and a CUDA graph (day 9) that
// repeats itself.
//
//   ./course run day36                                     every version, verified and timed
//   ./course run day36 --program                           program.cu: one search, from main() on
//   ./course inspect day36 --only edge_centric             sectors per load, line by line
#pragma once

#include <cuda_runtime.h>

#include "common/device/grid.hpp"
#include "common/device/relaxed.cuh"
#include "vertex.hpp"

namespace day36 {

using course::load_relaxed;
using course::store_relaxed;

constexpr unsigned kBlock = 256;

// Neighbours of vertex v: neighbours[offsets[v]] up to neighbours[offsets[v + 1] - 1]. In rows
// (CSR, day 35) the edges of v lead to them; in columns (CSC) their edges lead to v.
struct Rows {
    const unsigned* offsets;
    const Vertex* neighbours;
    unsigned vertices;
};

__device__ inline unsigned global_thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// Before a search: no vertex has a level but the source.
__global__ void reset(unsigned* level, Vertex* parent, unsigned vertices, Vertex source) {
    const Vertex v = global_thread();
    if (v >= vertices) return;
    level[v] = v == source ? 0 : kUnreached;
    parent[v] = v == source ? source : kUnreached;
}

inline void launch_reset(unsigned* level, Vertex* parent, unsigned vertices, Vertex source,
                         cudaStream_t stream) {
    reset<<<course::blocks_for(vertices, kBlock), kBlock, 0, stream>>>(level, parent, vertices, source);
}

// Idea: a thread for each vertex. If the vertex is in the frontier, of level `current` - 1, its
// neighbours that have no level get level `current`. A launch for each level.
// Cost removed: the queue of the CPU, one vertex after the other.
// Still limits it: latency of the thread whose vertex is a hub, while SMs have work for 15 % of the
// time. And each launch reads the levels of all vertices, for a few that are in the frontier.
//
// Two threads may find the same vertex at the same time. Both store the same level, and each is a
// right parent, so it does not matter whose store is the last one. Plain accesses would be a data
// race all the same, so these are relaxed atomics: each is one load or store of the whole word in
// memory. More is in the README ("Two threads, one vertex"). Both threads add to `found`, so
// it may exceed the number of vertices found. But it is 0 only if no vertex was found.
__global__ void push(Rows out, unsigned current, unsigned* level, Vertex* parent, unsigned* found) {
    const Vertex v = global_thread();
    if (v >= out.vertices || load_relaxed(&level[v]) != current - 1) return;
    for (unsigned e = out.offsets[v]; e < out.offsets[v + 1]; ++e) {
        const Vertex neighbour = out.neighbours[e];
        if (load_relaxed(&level[neighbour]) != kUnreached) continue;
        store_relaxed(&level[neighbour], current);
        store_relaxed(&parent[neighbour], v);
        atomicAdd(found, 1u);
    }
}

// `found` must be 0.
inline void launch_push(const Rows& out, unsigned current, unsigned* level, Vertex* parent, unsigned* found,
                        cudaStream_t stream) {
    push<<<course::blocks_for(out.vertices, kBlock), kBlock, 0, stream>>>(out, current, level, parent, found);
}

// Idea: the other way round. A vertex without a level looks for a neighbour in the frontier, along
// the edges that lead to it (CSC). One is enough: the loop ends.
// Cost removed: the rest of the list, once a parent is found. And only one thread stores to a
// vertex, so the parent needs no atomic; others may load its level at the same time.
// Still limits it: latency, as in push. And if the frontier is small, nearly every list is read to
// its end without a hit.
__global__ void pull(Rows in, unsigned current, unsigned* level, Vertex* parent, unsigned* found) {
    const Vertex v = global_thread();
    if (v >= in.vertices || load_relaxed(&level[v]) != kUnreached) return;
    for (unsigned e = in.offsets[v]; e < in.offsets[v + 1]; ++e) {
        const Vertex neighbour = in.neighbours[e];
        if (load_relaxed(&level[neighbour]) != current - 1) continue;
        store_relaxed(&level[v], current);
        parent[v] = neighbour;
        atomicAdd(found, 1u);
        break;
    }
}

inline void launch_pull(const Rows& in, unsigned current, unsigned* level, Vertex* parent, unsigned* found,
                        cudaStream_t stream) {
    pull<<<course::blocks_for(in.vertices, kBlock), kBlock, 0, stream>>>(in, current, level, parent, found);
}

// Idea: a thread for each edge, from sources[e] to targets[e] (COO, day 35).
// Cost removed: divergence between threads with long and short lists. Adjacent threads read
// adjacent edges.
// Still limits it: latency. Each launch reads both ends of all edges (counters: warps wait for
// loads 91 % of their time; L2 43 % busy).
__global__ void edge_centric(const Vertex* sources, const Vertex* targets, unsigned edges, unsigned current,
                             unsigned* level, Vertex* parent, unsigned* found) {
    const unsigned e = global_thread();
    if (e >= edges) return;
    const Vertex from = sources[e];
    const Vertex to = targets[e];
    if (load_relaxed(&level[from]) != current - 1 || load_relaxed(&level[to]) != kUnreached) return;
    store_relaxed(&level[to], current);
    store_relaxed(&parent[to], from);
    atomicAdd(found, 1u);
}

inline void launch_edge_centric(const Vertex* sources, const Vertex* targets, unsigned edges,
                                unsigned current, unsigned* level, Vertex* parent, unsigned* found,
                                cudaStream_t stream) {
    if (edges == 0) return;  // a grid has at least one block
    edge_centric<<<course::blocks_for(edges, kBlock), kBlock, 0, stream>>>(sources, targets, edges, current,
                                                                           level, parent, found);
}

// A frontier of more than a 20th of the vertices is large: pull.
constexpr unsigned kLargePart = 20;

// Idea: push while the frontier is small, pull when it is large. `in_frontier`: `found` of the
// level before.
// Cost removed: most of the edges of the large levels.
// Still limits it: the same as push.
inline void launch_direction_simple(const Rows& out, const Rows& in, unsigned in_frontier, unsigned current,
                                    unsigned* level, Vertex* parent, unsigned* found, cudaStream_t stream) {
    if (in_frontier <= out.vertices / kLargePart)
        launch_push(out, current, level, parent, found, stream);
    else
        launch_pull(in, current, level, parent, found, stream);
}

// Idea: a queue. Vertices enter it in the order in which they are found, each once. So one array
// holds the frontiers of all levels, one after the other: this level's vertices are queue[begin] to
// queue[end - 1], and those of the next one go to queue[end], queue[end + 1], ...
// Cost removed: reading all vertices in each level. The search reads each edge once.
// Still limits it: hubs, as in push. And because a vertex may enter the queue only once, an atomic
// must decide which of several threads has found it; the thread of a hub waits for each of them.
__global__ void frontier(Rows out, Vertex* queue, unsigned begin, unsigned end, unsigned current,
                         unsigned* level, Vertex* parent, unsigned* found) {
    const unsigned i = begin + global_thread();
    if (i >= end) return;
    const Vertex v = queue[i];
    for (unsigned e = out.offsets[v]; e < out.offsets[v + 1]; ++e) {
        const Vertex neighbour = out.neighbours[e];
        if (atomicCAS(&level[neighbour], kUnreached, current) != kUnreached) continue;
        parent[neighbour] = v;
        queue[end + atomicAdd(found, 1u)] = neighbour;
    }
}

inline void launch_frontier(const Rows& out, Vertex* queue, unsigned begin, unsigned end, unsigned current,
                            unsigned* level, Vertex* parent, unsigned* found, cudaStream_t stream) {
    frontier<<<course::blocks_for(end - begin, kBlock), kBlock, 0, stream>>>(out, queue, begin, end, current,
                                                                             level, parent, found);
}

constexpr unsigned kPrivate = 2048;  // vertices in a block's own queue

// Gives `neighbour` level `current`, if it has none. Of the threads that try, it returns true for
// one.
__device__ inline bool claim(unsigned* level, Vertex neighbour, unsigned current) {
    // A load is cheaper than an atomic, and most neighbours already have a level.
    if (load_relaxed(&level[neighbour]) != kUnreached) return false;
    return atomicCAS(&level[neighbour], kUnreached, current) == kUnreached;
}

// All threads of the grid expand one level. A separate function, because beyond/ uses it, too.
__device__ inline void expand_privatised(Rows out, Vertex* queue, unsigned begin, unsigned end,
                                         unsigned current, unsigned* level, Vertex* parent, unsigned* found) {
    __shared__ Vertex own[kPrivate];
    __shared__ unsigned own_count;  // may exceed kPrivate
    __shared__ unsigned own_place;
    if (threadIdx.x == 0) own_count = 0;
    __syncthreads();
    for (unsigned i = begin + global_thread(); i < end; i += gridDim.x * blockDim.x) {
        const Vertex v = queue[i];
        for (unsigned e = out.offsets[v]; e < out.offsets[v + 1]; ++e) {
            const Vertex neighbour = out.neighbours[e];
            if (!claim(level, neighbour, current)) continue;
            parent[neighbour] = v;
            const unsigned place = atomicAdd(&own_count, 1u);
            if (place < kPrivate)
                own[place] = neighbour;
            else
                queue[end + atomicAdd(found, 1u)] = neighbour;
        }
    }
    __syncthreads();  // the block's queue is complete
    const unsigned count = min(own_count, kPrivate);
    if (threadIdx.x == 0) own_place = end + atomicAdd(found, count);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        queue[own_place + i] = own[i];
}

// Idea: privatisation (day 12). A block collects its vertices in shared memory and reserves room
// for all of them at once. Vertices that do not fit go to the queue directly.
// Cost removed: all but one of a block's atomics on the global counter. Stores to the queue are
// coalesced.
// Still limits it: hubs. The other warps of the block wait at its barrier, 77 % of their time. If
// levels are small, a launch and a copy of the counter for each are nearly all of the time.
__global__ void frontier_privatised(Rows out, Vertex* queue, unsigned begin, unsigned end, unsigned current,
                                    unsigned* level, Vertex* parent, unsigned* found) {
    expand_privatised(out, queue, begin, end, current, level, parent, found);
}

inline void launch_frontier_privatised(const Rows& out, Vertex* queue, unsigned begin, unsigned end,
                                       unsigned current, unsigned* level, Vertex* parent, unsigned* found,
                                       cudaStream_t stream) {
    frontier_privatised<<<course::blocks_for(end - begin, kBlock), kBlock, 0, stream>>>(
        out, queue, begin, end, current, level, parent, found);
}

}  // namespace day36
