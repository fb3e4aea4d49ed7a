// Day 39 as one program: the quadtree of random points, built by a kernel that launches kernels and
// by a loop of the host; both checked, and the times.
//
//   nvcc -std=c++20 -I.. program.cu -rdc=true && ./a.out 1000000        in this folder, with a GPU
//   ./course run day39 --program                                         anywhere
//
// -rdc=true makes relocatable device code, which kernels that launch kernels need. nvcc then links
// the device's runtime, cudadevrt, by itself.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "dynamic_parallelism.cuh"

using day39::Header;
using day39::Node;

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
    constexpr day39::Limits kLimits = {.capacity = 32, .max_depth = 10};
    constexpr std::size_t kMostNodes = ((std::size_t{1} << 22) - 1) / 3;  // 1 + 4 + ... + 4^10
    const auto n = static_cast<unsigned>(argc > 1 ? number(argv[1], kMost) : 20'000);
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    std::mt19937 random(39);
    std::vector<float2> points(n);
    for (float2& p : points)
        p = {static_cast<float>(random() >> 8) * 0x1p-24f, static_cast<float>(random() >> 8) * 0x1p-24f};

    day39::Tree tree{};
    tree.limits = kLimits;
    CHECK(cudaMalloc(&tree.even, n * sizeof(float2)));
    CHECK(cudaMalloc(&tree.odd, n * sizeof(float2)));
    CHECK(cudaMalloc(&tree.nodes, kMostNodes * sizeof(Node)));
    CHECK(cudaMalloc(&tree.header, sizeof(Header)));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    for (const bool by_children : {true, false}) {
        float ms = 0;
        // The first tree also loads the kernels, so the second one is timed.
        for (int repeat = 0; repeat < 2; ++repeat) {
            CHECK(cudaMemcpy(tree.even, points.data(), n * sizeof(float2), cudaMemcpyHostToDevice));
            CHECK(cudaMemset(tree.header, 0, sizeof(Header)));
            CHECK(cudaEventRecord(start));
            day39::launch_plant(tree, n, nullptr);
            if (by_children) {
                day39::launch_tree_children(tree, n, nullptr);
            } else {
                unsigned first = 0, end = 1;
                for (unsigned depth = 0; depth < kLimits.max_depth && first < end; ++depth) {
                    day39::launch_tree_levels(tree, first, end, nullptr);
                    first = end;
                    CHECK(cudaMemcpy(&end, &tree.header->nodes, sizeof(end), cudaMemcpyDeviceToHost));
                }
                day39::launch_finish(tree, nullptr);
            }
            CHECK(cudaGetLastError());
            CHECK(cudaEventRecord(stop));
            CHECK(cudaEventSynchronize(stop));
            CHECK(cudaEventElapsedTime(&ms, start, stop));
        }
        // Each leaf has its points, and no more than it may.
        Header header;
        CHECK(cudaMemcpy(&header, tree.header, sizeof(Header), cudaMemcpyDeviceToHost));
        std::vector<Node> nodes(header.nodes);
        std::vector<float2> sorted(n);
        CHECK(cudaMemcpy(nodes.data(), tree.nodes, nodes.size() * sizeof(Node), cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(sorted.data(), tree.even, n * sizeof(float2), cudaMemcpyDeviceToHost));
        std::size_t in_leaves = 0;
        for (const Node& node : nodes) {
            if (node.children != 0) continue;
            in_leaves += node.end - node.begin;
            bool right = !day39::must_split(node, kLimits);
            for (unsigned i = node.begin; i < node.end; ++i) {
                const float squares = static_cast<float>(1u << node.depth);
                right = right && static_cast<unsigned>(sorted[i].x * squares) == node.x &&
                        static_cast<unsigned>(sorted[i].y * squares) == node.y;
            }
            if (right) continue;
            std::printf("the leaf (%u, %u) of depth %u is wrong\n", node.x, node.y, node.depth);
            return 1;
        }
        if (header.launch_error != 0) {
            std::printf("a child was not launched: %s\n",
                        cudaGetErrorString(static_cast<cudaError_t>(header.launch_error)));
            return 1;
        }
        if (in_leaves != n) {
            std::printf("the leaves have %zu points; expected %u\n", in_leaves, n);
            return 1;
        }
        std::printf("%-13s %u points in %u leaves, all right: %.3f ms\n",
                    by_children ? "tree_children" : "tree_levels", n, header.leaves, ms);
    }
    for (void* array : {(void*)tree.even, (void*)tree.odd, (void*)tree.nodes, (void*)tree.header})
        CHECK(cudaFree(array));
}
