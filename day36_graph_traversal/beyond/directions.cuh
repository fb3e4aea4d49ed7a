// Day 36, beyond: a direction for each level. Read bottom_up.cuh first.
//
//   version              what is new                           what limits it
//   direction_optimised  top-down, bottom-up, or in one block  barriers and latency
#pragma once

#include "bottom_up.cuh"

namespace day36 {

constexpr unsigned kFewEdges = 2048;  // two steps of the warps of one block

// One block does all levels until one has more than kFewEdges edges. All its threads have the same
// `p`. The counter is in shared memory: other blocks may still be reading those of the grid.
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
// Still limits it: barriers and latency if there are many levels; random reads of bits if there are
// few.
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

inline void launch_direction_optimised(const Traversal& t, Progress* progress, cudaStream_t stream) {
    launch_resident(direction_optimised, kLargeBlock, stream, t, progress);
}

}  // namespace day36
