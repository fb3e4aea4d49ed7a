// One thread does everything, and takes the vertices in their order.
// exercise: day36/cooperative
// needs: frontier_privatised
// expect: does each thread do all the work|To global memory it makes \d+ requests|In global memory it needs \d+ sectors
__global__ void cooperative(Rows out, Vertex source, Vertex* queue, unsigned* level, Vertex* parent,
                            unsigned* found) {
    if (global_thread() != 0) return;
    for (Vertex v = 0; v < out.vertices; ++v) {
        level[v] = v == source ? 0 : kUnreached;
        parent[v] = v == source ? source : kUnreached;
    }
    queue[0] = source;
    unsigned begin = 0;
    unsigned end = 1;
    for (; begin < end; ++begin) {
        const Vertex v = queue[begin];
        for (unsigned e = out.offsets[v]; e < out.offsets[v + 1]; ++e) {
            const Vertex neighbour = out.neighbours[e];
            if (level[neighbour] != kUnreached) continue;
            level[neighbour] = level[v] + 1;
            parent[neighbour] = v;
            queue[end++] = neighbour;
        }
    }
}
