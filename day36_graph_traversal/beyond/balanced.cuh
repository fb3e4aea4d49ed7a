// Day 36, beyond: load balancing. Read small_levels.cuh first; bottom_up.cuh comes next.
//
//   version            what is new                            what limits it
//   frontier_balanced  a hub becomes many entries of a queue  every edge is read
//
// The kernel, frontier_balanced, is at the end: it calls begin_search() once, then top_down() for
// each level. top_down() reads edges, visit() marks a vertex, keep() collects it in shared memory,
// append() makes entries of the queue from it.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "common/device/grid.hpp"
#include "common/device/relaxed.cuh"
#include "common/device/warp.cuh"
#include "graph_traversal.cuh"
#include "graph_traversal.hpp"
#include "resident.hpp"

namespace day36 {

using course::kWarpSize;
using course::kWholeWarp;

constexpr unsigned kLargeBlock = 1024;  // threads; with few blocks, a barrier of the grid is cheap

// The data of the kernels in this file and the next parts.
struct Traversal {
    Rows out;
    Rows in;
    Vertex source;
    unsigned edges;
    unsigned words;  // of each bitmap: a word has 32 vertices
    const unsigned* without_incoming;
    unsigned* level;
    Vertex* parent;
    unsigned* visited;
    unsigned* frontier;  // two bitmaps
    Entry* queue;
    unsigned long long* found;  // three counters
};

// A counter holds two numbers, which one atomic adds to: entries of the queue in the upper half,
// their edges in the lower one.
__device__ inline unsigned entries_of(unsigned long long found) {
    return static_cast<unsigned>(found >> 32);
}
__device__ inline unsigned edges_of(unsigned long long found) {
    return static_cast<unsigned>(found);
}

__device__ inline unsigned lane() {
    return threadIdx.x % kWarpSize;
}
__device__ inline unsigned warps_of_grid() {
    return gridDim.x * (blockDim.x / kWarpSize);
}

// The sum of `value` over this lane and those before it. All lanes call it.
template <class T>
__device__ T running_sum(T value) {
    for (unsigned distance = 1; distance < kWarpSize; distance *= 2) {
        const T before = __shfl_up_sync(kWholeWarp, value, distance);
        if (lane() >= distance) value += before;
    }
    return value;
}

// Lane l owns the items from the `end` of lane l - 1 to its own `end` - 1. Returns the owner of
// `item`, by a binary search over the lanes; 31 for an item beyond the last. All lanes call it,
// each for an item of its own.
__device__ inline unsigned owner_of(unsigned end, unsigned item) {
    unsigned owner = 0;
    for (unsigned step = kWarpSize / 2; step > 0; step /= 2) {
        if (__shfl_sync(kWholeWarp, end, owner + step - 1) <= item) owner += step;
    }
    return owner;
}

// Appends a vertex of each lane (kUnreached: none) to the queue after `end`, with an entry for
// every 32 of its edges. All lanes of a warp call it. One atomic reserves the places of all.
__device__ inline void append(const Traversal& t, unsigned end, Vertex vertex, unsigned long long* found) {
    unsigned first = 0;
    unsigned last = 0;
    if (vertex != kUnreached) {
        first = t.out.offsets[vertex];
        last = t.out.offsets[vertex + 1];
    }
    const unsigned entries = course::ceil_div(last - first, kEntryEdges);
    const unsigned long long sums =
        running_sum(static_cast<unsigned long long>(entries) << 32 | (last - first));
    unsigned long long before = 0;
    if (lane() == kWarpSize - 1 && sums != 0) before = atomicAdd(found, sums);
    const unsigned place = end + entries_of(__shfl_sync(kWholeWarp, before, kWarpSize - 1));

    const unsigned own_end = entries_of(sums);
    const unsigned total = __shfl_sync(kWholeWarp, own_end, kWarpSize - 1);
    for (unsigned base = 0; base < total; base += kWarpSize) {
        const unsigned item = base + lane();
        const unsigned owner = owner_of(own_end, item);
        const unsigned piece = item - __shfl_sync(kWholeWarp, own_end - entries, owner);
        const Vertex of = __shfl_sync(kWholeWarp, vertex, owner);
        const unsigned begin = __shfl_sync(kWholeWarp, first, owner) + piece * kEntryEdges;
        const unsigned of_end = __shfl_sync(kWholeWarp, last, owner);
        if (item < total)
            t.queue[place + item] = {.vertex = of, .begin = begin, .end = min(begin + kEntryEdges, of_end)};
    }
}

constexpr unsigned kFound = 4096;  // vertices that a block collects, 16 KiB

// The vertices that a block has found in a level.
struct Found {
    Vertex vertices[kFound];
    unsigned count;  // may exceed kFound: vertices that did not fit went to the queue at once
};

// Keeps a vertex of each lane, or kUnreached for none. All lanes of a warp call it.
__device__ inline void keep(const Traversal& t, Found& mine, unsigned end, Vertex vertex,
                            unsigned long long* found) {
    const unsigned votes = __ballot_sync(kWholeWarp, vertex != kUnreached);
    if (votes == 0) return;
    unsigned place = 0;
    if (lane() == 0) place = atomicAdd(&mine.count, static_cast<unsigned>(__popc(votes)));
    place = __shfl_sync(kWholeWarp, place, 0) + __popc(votes & ((1u << lane()) - 1));
    if (vertex != kUnreached && place < kFound) {
        mine.vertices[place] = vertex;
        vertex = kUnreached;
    }
    if (__any_sync(kWholeWarp, vertex != kUnreached)) append(t, end, vertex, found);
}

// Appends what the block has kept. All its threads call it; a barrier must follow.
__device__ inline void append_kept(const Traversal& t, Found& mine, unsigned end, unsigned long long* found) {
    __syncthreads();  // all have kept what they found
    const unsigned count = min(mine.count, kFound);
    for (unsigned i = threadIdx.x; i - lane() < count; i += blockDim.x)
        append(t, end, i < count ? mine.vertices[i] : kUnreached, found);
    __syncthreads();  // all have read the count
    if (threadIdx.x == 0) mine.count = 0;
}

// Marks a vertex as visited. Returns true for the first thread only.
__device__ inline bool visit(unsigned* visited, Vertex v) {
    const unsigned bit = 1u << v % 32;
    // A load is cheaper than an atomic, and most neighbours have been visited already.
    if ((course::load_relaxed(&visited[v / 32]) & bit) != 0) return false;
    return (atomicOr(&visited[v / 32], bit) & bit) == 0;
}

// One level, top-down: this warp, number `warp` of `warps`, reads its share of the edges of the
// entries [begin, end) of the queue.
__device__ inline void top_down(const Traversal& t, Found& mine, unsigned begin, unsigned end, unsigned next,
                                unsigned warp, unsigned warps, unsigned long long* found) {
    // A small frontier is spread over all warps: each takes fewer than 32 entries, in one step.
    const unsigned share = min(course::ceil_div(end - begin, warps), static_cast<unsigned>(kWarpSize));
    for (unsigned i = begin + warp * share; i < end; i += warps * share) {
        Entry entry{};
        if (lane() < share && i + lane() < end) entry = t.queue[i + lane()];
        // Number the edges of all lanes from 0 to total - 1. The warp takes 32 of them per step.
        const unsigned own_end = running_sum(entry.end - entry.begin);
        const unsigned total = __shfl_sync(kWholeWarp, own_end, kWarpSize - 1);
        for (unsigned base = 0; base < total; base += kWarpSize) {
            const unsigned item = base + lane();
            const unsigned owner = owner_of(own_end, item);
            const Vertex from = __shfl_sync(kWholeWarp, entry.vertex, owner);
            const unsigned e = item + __shfl_sync(kWholeWarp, entry.end - own_end, owner);
            Vertex won = kUnreached;
            if (item < total) {
                const Vertex neighbour = t.out.neighbours[e];
                if (visit(t.visited, neighbour)) {
                    t.level[neighbour] = next;
                    t.parent[neighbour] = from;
                    won = neighbour;
                }
            }
            keep(t, mine, end, won, found);
        }
    }
    append_kept(t, mine, end, found);
}

// Before a search. A vertex without incoming edges counts as visited, so that bottom_up skips it.
__device__ inline void begin_search(const Traversal& t, Found& mine) {
    const unsigned threads = gridDim.x * blockDim.x;
    for (Vertex v = global_thread(); v < t.out.vertices; v += threads) {
        t.level[v] = v == t.source ? 0 : kUnreached;
        t.parent[v] = v == t.source ? t.source : kUnreached;
    }
    for (unsigned w = global_thread(); w < t.words; w += threads) {
        const unsigned source_bit = t.source / 32 == w ? 1u << t.source % 32 : 0;
        t.visited[w] = t.without_incoming[w] | source_bit;
    }
    if (threadIdx.x == 0) mine.count = 0;
    if (global_thread() < 3) t.found[global_thread()] = 0;
}

// Idea: load balancing. An entry of the queue is at most 32 edges of a vertex, so a hub becomes
// many entries. A warp takes up to 32 entries, sums up their edges, and processes these 32 at a
// time, no matter which vertices they belong to.
// Cost removed: waiting for a hub. All lanes have an edge, and mostly read adjacent ones. A bit
// marks a vertex as visited, which takes 32 times fewer bytes than its level.
// Still limits it: every edge is read, and in the large levels nearly all of them lead to vertices
// that have already been visited.
__global__ void __launch_bounds__(kLargeBlock) frontier_balanced(Traversal t) {
    __shared__ Found mine;
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const unsigned warp = global_thread() / kWarpSize;
    begin_search(t, mine);
    grid.sync();
    if (warp == 0) append(t, 0, lane() == 0 ? t.source : kUnreached, &t.found[0]);
    grid.sync();
    unsigned begin = 0;
    unsigned end = entries_of(t.found[0]);
    for (unsigned level = 1; begin < end; ++level) {
        if (global_thread() == 0) t.found[(level + 1) % 3] = 0;
        top_down(t, mine, begin, end, level, warp, warps_of_grid(), &t.found[level % 3]);
        grid.sync();
        begin = end;
        end += entries_of(t.found[level % 3]);
    }
}

inline void launch_frontier_balanced(const Traversal& t, cudaStream_t stream) {
    launch_resident(frontier_balanced, kLargeBlock, stream, t);
}

}  // namespace day36
