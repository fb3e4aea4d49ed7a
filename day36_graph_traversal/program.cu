// Day 36 as one program: a breadth-first search of a random graph, checked, and the edges per
// second.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 1000000        in this folder, with a GPU
//   ./course run day36 --program                              anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "graph_traversal.cuh"

using day36::kUnreached;
using day36::Vertex;

// Every CUDA call can fail: check each one.
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (false)

// `text` as a whole number from 1 to `most`; 0 if it is not one, such as 1e9.
long long number(const char* text, long long most) {
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    return *end == '\0' && value >= 1 && value <= most ? value : 0;
}

int main(int argc, char** argv) {
    constexpr long long kMost = 100'000'000;
    const auto n = static_cast<unsigned>(argc > 1 ? number(argv[1], kMost) : 100'000);
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    // 8 n edges between random vertices, each stored in both directions: rows and columns are
    // equal.
    std::mt19937 random(36);
    std::vector<Vertex> from(8 * std::size_t{n}), to(from.size());
    std::vector<unsigned> offsets(n + 1, 0);
    for (std::size_t e = 0; e < from.size(); ++e) {
        from[e] = random() % n;
        to[e] = random() % n;
        ++offsets[from[e] + 1];
        ++offsets[to[e] + 1];
    }
    for (Vertex v = 0; v < n; ++v)
        offsets[v + 1] += offsets[v];
    std::vector<Vertex> neighbours(offsets[n]);
    std::vector<unsigned> next(offsets.begin(), offsets.end() - 1);
    for (std::size_t e = 0; e < from.size(); ++e) {
        neighbours[next[from[e]]++] = to[e];
        neighbours[next[to[e]]++] = from[e];
    }
    // The levels by a queue on the CPU.
    std::vector<unsigned> expected(n, kUnreached), level(n), parent(n);
    std::vector<Vertex> queue = {0};
    expected[0] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i)
        for (unsigned e = offsets[queue[i]]; e < offsets[queue[i] + 1]; ++e) {
            if (expected[neighbours[e]] != kUnreached) continue;
            expected[neighbours[e]] = expected[queue[i]] + 1;
            queue.push_back(neighbours[e]);
        }

    unsigned *device_offsets, *device_neighbours, *device_level, *device_parent, *found;
    CHECK(cudaMalloc(&device_offsets, offsets.size() * sizeof(unsigned)));
    CHECK(cudaMalloc(&device_neighbours, neighbours.size() * sizeof(Vertex)));
    CHECK(cudaMalloc(&device_level, n * sizeof(unsigned)));
    CHECK(cudaMalloc(&device_parent, n * sizeof(Vertex)));
    CHECK(cudaMalloc(&found, sizeof(unsigned)));
    const auto copy = [](void* device, const std::vector<unsigned>& host) {
        CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
    };
    copy(device_offsets, offsets);
    copy(device_neighbours, neighbours);
    const day36::Rows rows{device_offsets, device_neighbours, n};

    // The first search also loads the kernels, so the second one is timed.
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int search = 0; search < 2; ++search) {
        CHECK(cudaEventRecord(start));
        day36::launch_reset(device_level, device_parent, n, 0, nullptr);
        unsigned in_frontier = 1;
        for (unsigned current = 1; in_frontier != 0; ++current) {
            CHECK(cudaMemsetAsync(found, 0, sizeof(unsigned)));
            day36::launch_direction_simple(rows, rows, in_frontier, current, device_level, device_parent,
                                           found, nullptr);
            CHECK(cudaGetLastError());
            CHECK(cudaMemcpy(&in_frontier, found, sizeof(unsigned), cudaMemcpyDeviceToHost));
        }
        CHECK(cudaEventRecord(stop));
    }
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(level.data(), device_level, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(parent.data(), device_parent, n * sizeof(Vertex), cudaMemcpyDeviceToHost));
    for (Vertex v = 0; v < n; ++v) {
        const bool right_parent = v == 0 || level[v] == kUnreached || level[parent[v]] + 1 == level[v];
        if (level[v] == expected[v] && right_parent) continue;
        std::printf("vertex %u has level %u and parent %u; expected level %u\n", v, level[v], parent[v],
                    expected[v]);
        return 1;
    }
    std::printf("%u vertices, %zu edges: all levels right, %.3f ms, %.3f GTEPS\n", n, from.size(), ms,
                1e-6 * static_cast<double>(from.size()) / ms);
    for (void* array : {device_offsets, device_neighbours, device_level, device_parent, found})
        CHECK(cudaFree(array));
}
