// A lane reads its whole list, and goes on when it has found a parent.
// exercise: day36/bottom_up
// expect: In global memory it needs \d+ sectors, the lesson.s version \d+\.|To global memory it makes \d+ requests
__device__ inline void step_up(const Traversal& t, unsigned next, unsigned long long* found) {
    const unsigned* const from = frontier_of(t, next - 1);
    unsigned* const to = frontier_of(t, next);
    for (unsigned w = global_thread() / kWarpSize; w < t.words; w += warps_of_grid()) {
        const unsigned seen = t.visited[w];
        const Vertex v = w * 32 + lane();
        Vertex parent = kUnreached;
        if ((seen >> lane() & 1) == 0) {
            const unsigned end = t.in.offsets[v + 1];
            for (unsigned e = t.in.offsets[v]; e < end; ++e) {
                const Vertex neighbour = t.in.neighbours[e];
                if (has(from, neighbour)) parent = neighbour;
            }
            if (parent != kUnreached) {
                t.level[v] = next;
                t.parent[v] = parent;
                atomicAdd(found, 1ull << 32 | (end - t.in.offsets[v]));
            }
        }
        const unsigned bits = __ballot_sync(kWholeWarp, parent != kUnreached);
        if (lane() == 0) {
            to[w] = bits;
            t.visited[w] = seen | bits;
        }
    }
}
