// An exercise on breadth-first search: how many threads does each level launch, how many of them go
// through neighbours, how many label a vertex? 4th edition 15.1, 5th edition 18.1.
//
//   ./course run docs/answers/levels.cu
#include <cuda_runtime.h>

#include <cstdio>

constexpr int kVertices = 8, kEdges = 15, kUnvisited = -1;

// The edges of the exercise's graph.
struct Graph {
    int from[kEdges], to[kEdges];
};

struct Counts {
    int threads, busy, labelling;
};

// Kernels read the levels as they were before the launch, `old`, and store to `levels`.

// Push: a thread per vertex of the last level goes through its edges. With a frontier, only those
// vertices have threads.
__global__ void push(const Graph* graph, const int* old, int* levels, int level, bool has_frontier,
                     Counts* counts) {
    const int vertex = threadIdx.x;
    const bool is_busy = old[vertex] == level - 1;
    if (!has_frontier || is_busy) atomicAdd(&counts->threads, 1);
    if (!is_busy) return;
    atomicAdd(&counts->busy, 1);
    for (int e = 0; e < kEdges; ++e)
        if (graph->from[e] == vertex) atomicCAS(&levels[graph->to[e]], kUnvisited, level);
}

// Pull: a thread per vertex without a label looks for a neighbour of the last level.
__global__ void pull(const Graph* graph, const int* old, int* levels, int level, Counts* counts) {
    const int vertex = threadIdx.x;
    atomicAdd(&counts->threads, 1);
    if (old[vertex] != kUnvisited) return;
    atomicAdd(&counts->busy, 1);
    for (int e = 0; e < kEdges; ++e)
        if (graph->to[e] == vertex && old[graph->from[e]] == level - 1) {
            levels[vertex] = level;
            atomicAdd(&counts->labelling, 1);
            return;
        }
}

// A thread per edge. Several edges may lead to the same new vertex.
__global__ void push_edges(const Graph* graph, const int* old, int* levels, int level, Counts* counts) {
    const int from = graph->from[threadIdx.x], to = graph->to[threadIdx.x];
    atomicAdd(&counts->threads, 1);
    if (old[from] != level - 1 || old[to] != kUnvisited) return;
    atomicAdd(&counts->labelling, 1);
    atomicExch(&levels[to], level);
}

int main() {
    Graph* graph = nullptr;
    int* levels = nullptr;
    Counts* counts = nullptr;
    cudaMallocManaged(&graph, sizeof(Graph));
    cudaMallocManaged(&levels, 2 * kVertices * sizeof(int));
    cudaMallocManaged(&counts, sizeof(Counts));
    int* const old = levels + kVertices;
    *graph = {{0, 0, 1, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 7}, {2, 5, 0, 4, 7, 3, 0, 6, 3, 1, 7, 4, 2, 4, 6}};
    const char* const names[] = {"push", "pull", "a thread per edge", "push with a frontier"};
    int last_level = 0;
    for (int way = 0; way < 4; ++way) {
        for (int v = 0; v < kVertices; ++v)
            levels[v] = v == 0 ? 0 : kUnvisited;
        std::printf("%s\n", names[way]);
        for (int level = 1, before = 0, after = 1; after != before; ++level) {
            *counts = {};
            for (int v = 0; v < kVertices; ++v)
                old[v] = levels[v];
            if (way == 1)
                pull<<<1, kVertices>>>(graph, old, levels, level, counts);
            else if (way == 2)
                push_edges<<<1, kEdges>>>(graph, old, levels, level, counts);
            else
                push<<<1, kVertices>>>(graph, old, levels, level, way == 3, counts);
            if (cudaDeviceSynchronize() != cudaSuccess) return 1;
            before = after;
            after = 0;
            for (int v = 0; v < kVertices; ++v)
                after += levels[v] != kUnvisited;
            std::printf("  level %d: %2d threads, ", level, counts->threads);
            if (way != 2) std::printf("%d go through neighbours, ", counts->busy);
            if (way == 1 || way == 2) std::printf("%d label a vertex, ", counts->labelling);
            std::printf("%d new\n", after - before);
            if (after != before) last_level = level;
        }
    }
    return last_level == 3 ? 0 : 1;
}
