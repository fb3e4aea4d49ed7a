// Thread 0 follows the list while others still copy it.
// exercise: day04/in_shared
// expect: memory_hierarchy.cuh:\d+
// inspect: yes
__global__ void chase_shared(const unsigned* next, unsigned lines, unsigned start, unsigned steps,
                             unsigned* last) {
    __shared__ unsigned copy[kLinesInShared * kLine];
    for (unsigned i = threadIdx.x; i < lines * kLine; i += kBlock)
        copy[i] = next[i];
    if (threadIdx.x != 0) return;
    unsigned at = start;
    for (unsigned step = 0; step < steps; ++step)
        at = copy[at];
    *last = at;
}
