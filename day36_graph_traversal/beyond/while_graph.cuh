// Day 36, beyond: a search without a cooperative launch, in a CUDA graph. The host launches
// graph_reset, graph_start, then a graph with a while node. The node's body, graph_level and
// while_graph, is repeated until a kernel clears a condition.
//
//   version      what is new                          what limits it
//   while_graph  a CUDA graph repeats the level       two launches per level
#pragma once

#include "directions.cuh"

namespace day36 {

__global__ void __launch_bounds__(kLargeBlock) graph_reset(Traversal t) {
    __shared__ Found mine;
    begin_search(t, mine);
}

inline void launch_graph_reset(const Traversal& t, cudaStream_t stream) {
    const unsigned blocks = course::resident_blocks(graph_reset, static_cast<int>(kLargeBlock));
    graph_reset<<<blocks, kLargeBlock, 0, stream>>>(t);
}

__global__ void graph_start(Traversal t, Progress* progress) {
    append(t, 0, lane() == 0 ? t.source : kUnreached, &t.found[0]);
    __syncwarp();
    if (lane() == 0)
        *progress = {
            .level = 0, .begin = 0, .end = entries_of(t.found[0]), .edges = edges_of(t.found[0]), .turn = 1};
}

inline void launch_graph_start(const Traversal& t, Progress* progress, cudaStream_t stream) {
    graph_start<<<1, kWarpSize, 0, stream>>>(t, progress);
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

// `blocks`: as many as can be resident. The stream captures the node's body.
inline void launch_graph_level(const Traversal& t, const Progress* progress, unsigned blocks,
                               cudaStream_t stream) {
    graph_level<<<blocks, kLargeBlock, 0, stream>>>(t, progress);
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

inline void launch_while_graph(const Traversal& t, Progress* progress, cudaGraphConditionalHandle go_on,
                               cudaStream_t stream) {
    while_graph<<<1, kLargeBlock, 0, stream>>>(t, progress, go_on);
}

}  // namespace day36
