// Day 39, beyond: the quadtree level by level, in a CUDA graph (day 9) that repeats itself. The
// graph has one node, a while node (day 36). Its body is tree_while and next_level, and is repeated
// until a kernel clears a condition.
//
//   version     what is new                                  what limits it
//   tree_while  the device decides whether a level follows   latency; atomics
#pragma once

#include "../dynamic_parallelism.cuh"

namespace day39 {

// The nodes of the level: first to end - 1.
struct Level {
    unsigned first, end;
};

// Idea: the host's loop becomes a node of a graph. A grid of fixed size splits the nodes of the
// level, each block several of them; then one thread looks whether there are new ones.
// Cost removed: the copy of a count to the host, and the wait for it, for each level.
// Still limits it: latency of the splits, by analogy with tree_levels, and the atomics of finish
// (counters: 65 % busy). The profiler does not see inside a while node. Two launches for each
// level, and one block for the root.
__global__ void tree_while(Tree t, const Level* level) {
    const Level now = *level;
    // No barrier between two calls: split() itself has two before it stores what slower threads may
    // still read.
    for (unsigned i = now.first + blockIdx.x; i < now.end; i += gridDim.x)
        split(t, i);
}

inline void launch_tree_while(const Tree& t, const Level* level, unsigned blocks, cudaStream_t stream) {
    tree_while<<<blocks, kTreeBlock, 0, stream>>>(t, level);
}

__global__ void next_level(const Header* header, Level* level, cudaGraphConditionalHandle go_on) {
    level->first = level->end;
    level->end = header->nodes;
    cudaGraphSetConditional(go_on, level->first < level->end ? 1 : 0);
}

inline void launch_next_level(const Header* header, Level* level, cudaGraphConditionalHandle go_on,
                              cudaStream_t stream) {
    next_level<<<1, 1, 0, stream>>>(header, level, go_on);
}

}  // namespace day39
