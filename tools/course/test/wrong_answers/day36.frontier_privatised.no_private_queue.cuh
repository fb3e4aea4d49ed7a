// No queue of the block: an atomic in global memory for each vertex.
// exercise: day36/frontier_privatised
// expect: In global memory it does \d+ atomic operations, the lesson's version \d+
__device__ inline void expand_privatised(Rows out, Vertex* queue, unsigned begin, unsigned end,
                                         unsigned current, unsigned* level, Vertex* parent, unsigned* found) {
    for (unsigned i = begin + global_thread(); i < end; i += gridDim.x * blockDim.x) {
        const Vertex v = queue[i];
        for (unsigned e = out.offsets[v]; e < out.offsets[v + 1]; ++e) {
            const Vertex neighbour = out.neighbours[e];
            if (!claim(level, neighbour, current)) continue;
            parent[neighbour] = v;
            queue[end + atomicAdd(found, 1u)] = neighbour;
        }
    }
}
