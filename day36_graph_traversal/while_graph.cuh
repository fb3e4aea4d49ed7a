// Day 36, fifth part: a search without a cooperative launch, in a CUDA graph. The host launches the
// graph once: graph_reset, graph_start, then a while node. The node's body, graph_level and
// while_graph, is repeated until a kernel clears a condition.
#pragma once

#include "directions.cuh"

namespace day36 {

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
// of one block, which processes the following levels with few edges, and sets the condition.
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
