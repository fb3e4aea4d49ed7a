// One block does everything, as in single_block.
// exercise: day36/cooperative
// needs: frontier_privatised
// expect: Do all blocks expand each level
__global__ void cooperative(Rows out, Vertex source, Vertex* queue, unsigned* level, Vertex* parent,
                            unsigned* found) {
    __shared__ unsigned tail;
    if (blockIdx.x != 0) return;
    for (Vertex v = threadIdx.x; v < out.vertices; v += blockDim.x) {
        level[v] = v == source ? 0 : kUnreached;
        parent[v] = v == source ? source : kUnreached;
    }
    if (threadIdx.x == 0) {
        queue[0] = source;
        tail = 1;
    }
    __syncthreads();
    unsigned begin = 0;
    unsigned end = 1;
    for (unsigned current = 1; begin < end; ++current) {
        for (unsigned i = begin + threadIdx.x; i < end; i += blockDim.x) {
            const Vertex v = queue[i];
            for (unsigned e = out.offsets[v]; e < out.offsets[v + 1]; ++e) {
                const Vertex neighbour = out.neighbours[e];
                if (!claim(level, neighbour, current)) continue;
                parent[neighbour] = v;
                queue[atomicAdd(&tail, 1u)] = neighbour;
            }
        }
        __syncthreads();
        begin = end;
        end = tail;
        __syncthreads();
    }
}
