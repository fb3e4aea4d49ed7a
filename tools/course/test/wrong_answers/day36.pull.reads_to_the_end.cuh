// A vertex that has found a parent reads the rest of its list.
// exercise: day36/pull
// expect: In global memory it needs \d+ sectors, the lesson's version \d+\.\n\s+\S*graph_traversal.cuh:\d+:
__global__ void pull(Rows in, unsigned current, unsigned* level, Vertex* parent, unsigned* found) {
    const Vertex v = global_thread();
    if (v >= in.vertices || load_relaxed(&level[v]) != kUnreached) return;
    Vertex mine = kUnreached;
    for (unsigned e = in.offsets[v]; e < in.offsets[v + 1]; ++e) {
        const Vertex neighbour = in.neighbours[e];
        if (load_relaxed(&level[neighbour]) == current - 1) mine = neighbour;
    }
    if (mine == kUnreached) return;
    store_relaxed(&level[v], current);
    parent[v] = mine;
    atomicAdd(found, 1u);
}
