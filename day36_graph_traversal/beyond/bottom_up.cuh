// Day 36, beyond: bitmaps, and searches from below. Read balanced.cuh first.
//
//   version    what is new                                  what limits it
//   bottom_up  bits, and the rest of a long list by a warp  small levels: all bits are read
#pragma once

#include "balanced.cuh"

namespace day36 {

// The bitmap of the frontier of a level. Two bitmaps take turns.
__device__ inline unsigned* frontier_of(const Traversal& t, unsigned level) {
    return t.frontier + level % 2 * t.words;
}

// The frontier as bits, from the levels of all vertices.
__device__ inline void collect_frontier(const Traversal& t, unsigned level) {
    for (unsigned w = global_thread() / kWarpSize; w < t.words; w += warps_of_grid()) {
        const Vertex v = w * 32 + lane();
        const unsigned bits = __ballot_sync(kWholeWarp, v < t.out.vertices && t.level[v] == level);
        if (lane() == 0) frontier_of(t, level)[w] = bits;
    }
}

__device__ inline bool has(const unsigned* bits, Vertex v) {
    return (bits[v / 32] >> v % 32 & 1) != 0;
}

constexpr unsigned kOwnEdges = 8;  // edges of its list that a lane reads by itself

// One level, bottom-up: each vertex that was not visited looks for a neighbour in the frontier.
// Those that find one are the frontier of level `next`. Adds their number and their edges to
// `found`.
__device__ inline void step_up(const Traversal& t, unsigned next, unsigned long long* found) {
    const unsigned* const from = frontier_of(t, next - 1);
    unsigned* const to = frontier_of(t, next);
    unsigned long long own_found = 0;
    for (unsigned w = global_thread() / kWarpSize; w < t.words; w += warps_of_grid()) {
        // Only this warp writes this word, so its bits need no atomics.
        const unsigned seen = t.visited[w];
        const Vertex v = w * 32 + lane();
        unsigned e = 0;
        unsigned end = 0;
        if ((seen >> lane() & 1) == 0) {
            e = t.in.offsets[v];
            end = t.in.offsets[v + 1];
        }
        const unsigned edges = end - e;
        Vertex parent = kUnreached;
        for (const unsigned own_end = min(e + kOwnEdges, end); e < own_end && parent == kUnreached; ++e) {
            const Vertex neighbour = t.in.neighbours[e];
            if (has(from, neighbour)) parent = neighbour;
        }
        // The warp reads the rest of long lists, one list after the other: 32 edges in each step.
        unsigned open = __ballot_sync(kWholeWarp, parent == kUnreached && e < end);
        for (; open != 0; open &= open - 1) {
            const int of = __ffs(static_cast<int>(open)) - 1;
            const unsigned of_end = __shfl_sync(kWholeWarp, end, of);
            for (unsigned base = __shfl_sync(kWholeWarp, e, of); base < of_end; base += kWarpSize) {
                Vertex neighbour = kUnreached;
                if (base + lane() < of_end) neighbour = t.in.neighbours[base + lane()];
                const unsigned hits =
                    __ballot_sync(kWholeWarp, neighbour != kUnreached && has(from, neighbour));
                if (hits == 0) continue;
                const Vertex hit = __shfl_sync(kWholeWarp, neighbour, __ffs(static_cast<int>(hits)) - 1);
                if (static_cast<int>(lane()) == of) parent = hit;
                break;
            }
        }
        if (parent != kUnreached) {
            t.level[v] = next;
            t.parent[v] = parent;
            own_found += 1ull << 32 | edges;
        }
        const unsigned bits = __ballot_sync(kWholeWarp, parent != kUnreached);
        if (lane() == 0) {
            to[w] = bits;
            if (bits != 0) t.visited[w] = seen | bits;
        }
    }
    // Sum up first: one atomic on global memory for the block.
    __shared__ unsigned long long of_block;
    if (threadIdx.x == 0) of_block = 0;
    __syncthreads();
    const unsigned long long of_warp =
        course::warp_reduce(own_found, [](unsigned long long a, unsigned long long b) { return a + b; });
    if (lane() == 0) atomicAdd(&of_block, of_warp);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(found, of_block);
}

// Idea: pull, with bitmaps. A warp reads a word of 32 vertices, and those whose bit is 0 look for a
// parent. A lane reads the first 8 edges of its list itself. The whole warp reads the rest.
// Cost removed: reading levels, because a bit is enough. In a large level of a random graph, one of
// the first few edges is a hit.
// Still limits it: in a small level nearly all lists are read to their end.
__global__ void __launch_bounds__(kLargeBlock) bottom_up(Traversal t) {
    __shared__ Found mine;
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    begin_search(t, mine);
    grid.sync();
    collect_frontier(t, 0);
    grid.sync();
    bool any = true;
    for (unsigned level = 1; any; ++level) {
        if (global_thread() == 0) t.found[(level + 1) % 3] = 0;
        step_up(t, level, &t.found[level % 3]);
        grid.sync();
        any = entries_of(t.found[level % 3]) != 0;
    }
}

inline void launch_bottom_up(const Traversal& t, cudaStream_t stream) {
    launch_resident(bottom_up, kLargeBlock, stream, t);
}

}  // namespace day36
