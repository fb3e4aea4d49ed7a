// Day 36, third part: bitmaps, searches from below, and a direction for each level. Read
// balanced.cuh first. step_up() is a level of all kernels here that search from below.
#pragma once

#include "balanced.cuh"

namespace day36 {

// The bitmap of the frontier of a level. Two take turns.
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
        // Long lists, one after the other: 32 edges in each step.
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
// Cost removed: reading levels; a bit is enough. In a large level of a random graph, one of the
// first few edges is a hit.
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

constexpr unsigned kFewEdges = 2048;  // two steps of the warps of one block

// One block does all levels until one has more than kFewEdges edges. All its threads have the same
// `p`. The counter is the block's own, because other blocks may still be reading those of the grid.
__device__ inline void few_levels(const Traversal& t, Found& mine, Progress& p) {
    __shared__ unsigned long long found;
    while (p.begin < p.end && p.edges <= kFewEdges) {
        if (threadIdx.x == 0) found = 0;
        __syncthreads();
        ++p.level;
        top_down(t, mine, p.begin, p.end, p.level, threadIdx.x / kWarpSize, blockDim.x / kWarpSize, &found);
        __syncthreads();  // the level is complete
        p.begin = p.end;
        p.end += entries_of(found);
        p.edges = edges_of(found);
        __syncthreads();  // all have read the counter
    }
}

// After Beamer, Asanovic and Patterson (2012): bottom-up when the frontier has more than a 14th of
// the unexplored edges, those of vertices that were not visited, and more entries than a 24th of
// all vertices (a hub has several entries); top-down again when it has fewer vertices than that.
constexpr unsigned kEdgesRatio = 14;
constexpr unsigned kVerticesRatio = 24;

// Idea: a direction for each level. Few edges: one block, while the others wait. A large part of
// the graph: bottom-up, from the vertices that were not visited. Else: top-down, from the queue.
// Cost removed: most edges of the large levels, the bits of all vertices in the small ones, and the
// barrier of the grid in the smallest.
// Still limits it: barriers and latency where there are many levels; where there are few, random
// reads of bits.
__global__ void __launch_bounds__(kLargeBlock, 1) direction_optimised(Traversal t, Progress* progress) {
    __shared__ Found mine;
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const unsigned warp = global_thread() / kWarpSize;
    begin_search(t, mine);
    grid.sync();
    if (warp == 0) append(t, 0, lane() == 0 ? t.source : kUnreached, &t.found[0]);
    grid.sync();

    Progress p{
        .level = 0, .begin = 0, .end = entries_of(t.found[0]), .edges = edges_of(t.found[0]), .turn = 1};
    unsigned unexplored = t.edges - p.edges;
    while (p.begin < p.end) {
        if (p.edges <= kFewEdges) {
            if (blockIdx.x == 0) {
                few_levels(t, mine, p);
                if (threadIdx.x == 0) *progress = p;
            }
            grid.sync();
            p = *progress;
        } else if (p.end - p.begin > t.out.vertices / kVerticesRatio && p.edges > unexplored / kEdgesRatio) {
            collect_frontier(t, p.level);
            grid.sync();
            unsigned vertices = 0;
            do {
                unsigned long long* const found = &t.found[p.turn % 3];
                if (global_thread() == 0) t.found[(p.turn + 1) % 3] = 0;
                ++p.level;
                step_up(t, p.level, found);
                grid.sync();
                ++p.turn;
                vertices = entries_of(*found);
                unexplored -= min(unexplored, edges_of(*found));
            } while (vertices > t.out.vertices / kVerticesRatio);
            // The bitmap becomes a queue again.
            unsigned long long* const found = &t.found[p.turn % 3];
            if (global_thread() == 0) t.found[(p.turn + 1) % 3] = 0;
            for (unsigned w = warp; w < t.words; w += warps_of_grid()) {
                const bool is_set = has(frontier_of(t, p.level), w * 32 + lane());
                keep(t, mine, p.end, is_set ? w * 32 + lane() : kUnreached, found);
            }
            append_kept(t, mine, p.end, found);
            grid.sync();
            ++p.turn;
            p.begin = p.end;
            p.end += entries_of(*found);
            p.edges = edges_of(*found);
        } else {
            unsigned long long* const found = &t.found[p.turn % 3];
            if (global_thread() == 0) t.found[(p.turn + 1) % 3] = 0;
            ++p.level;
            top_down(t, mine, p.begin, p.end, p.level, warp, warps_of_grid(), found);
            grid.sync();
            ++p.turn;
            p.begin = p.end;
            p.end += entries_of(*found);
            p.edges = edges_of(*found);
            unexplored -= min(unexplored, p.edges);
        }
    }
}

// The next three kernels belong to while_graph, below: a search without a cooperative launch, in a
// CUDA graph. The host launches the graph once. Its body is repeated until a kernel clears a
// condition.
__global__ void __launch_bounds__(kLargeBlock) graph_reset(Traversal t) {
    __shared__ Found mine;
    begin_search(t, mine);
}

__global__ void graph_start(Traversal t, Progress* progress) {
    append(t, 0, lane() == 0 ? t.source : kUnreached, &t.found[0]);
    __syncwarp();
    if (lane() == 0)
        *progress = {
            .level = 0, .begin = 0, .end = entries_of(t.found[0]), .edges = edges_of(t.found[0]), .turn = 1};
}

// The body's first node: a level by all blocks.
__global__ void __launch_bounds__(kLargeBlock) graph_level(Traversal t, const Progress* progress) {
    __shared__ Found mine;
    if (threadIdx.x == 0) mine.count = 0;
    __syncthreads();
    const Progress p = *progress;
    top_down(t, mine, p.begin, p.end, p.level + 1, global_thread() / kWarpSize, warps_of_grid(),
             &t.found[p.turn % 3]);
}

// Idea: a while node. Its body is two kernels: graph_level, one level by all blocks; and this one,
// of one block, which does the levels with few edges that follow, and sets the condition.
// Cost removed: the host, as with a cooperative launch. But the blocks of a launch need not be
// resident at the same time, and other work may run beside it.
// Still limits it: two launches per level instead of a barrier.
__global__ void __launch_bounds__(kLargeBlock)
    while_graph(Traversal t, Progress* progress, cudaGraphConditionalHandle go_on) {
    __shared__ Found mine;
    if (threadIdx.x == 0) {
        mine.count = 0;
        t.found[(progress->turn + 1) % 3] = 0;
    }
    __syncthreads();
    Progress p = *progress;
    const unsigned long long found = t.found[p.turn % 3];
    p = {.level = p.level + 1,
         .begin = p.end,
         .end = p.end + entries_of(found),
         .edges = edges_of(found),
         .turn = p.turn + 1};
    __syncthreads();  // all have read the progress
    few_levels(t, mine, p);
    if (threadIdx.x != 0) return;
    *progress = p;
    cudaGraphSetConditional(go_on, p.begin < p.end ? 1 : 0);
}

}  // namespace day36
