// The level is tested and stored in two steps, so two threads may find the same vertex.
// exercise: day36/frontier
// expect: graph_traversal.cuh:\d+ and \S*graph_traversal.cuh:\d+: byte \d+ .* in no order
// inspect: yes
__global__ void frontier(Rows out, Vertex* queue, unsigned begin, unsigned end, unsigned current,
                         unsigned* level, Vertex* parent, unsigned* found) {
    const unsigned i = begin + global_thread();
    if (i >= end) return;
    const Vertex v = queue[i];
    for (unsigned e = out.offsets[v]; e < out.offsets[v + 1]; ++e) {
        const Vertex neighbour = out.neighbours[e];
        if (level[neighbour] != kUnreached) continue;
        level[neighbour] = current;
        parent[neighbour] = v;
        queue[end + atomicAdd(found, 1u)] = neighbour;
    }
}
