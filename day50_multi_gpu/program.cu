// Day 50 as one program: steps of the 25-point stencil on a grid in two slabs, one for each of two
// GPUs (both on GPU 0 if it is alone, or without peer access). Checked on the CPU.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 400      in this folder, with one GPU or two
//   ./course run day50 --program                        anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "multi_gpu.cuh"

// Every CUDA call can fail: check each one.
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (false)

using day50::kRadius, day50::kWeights;
struct Slab {
    int device;
    day50::Local local;
    float *in, *out;  // the planes of the slab, and kRadius ghost planes on each side
    cudaStream_t stream;
    cudaEvent_t swept;  // the edge is also in the other slab's ghost planes
};

// Each slab waits for the last step of the other one: its edge has arrived then, and the ghost
// planes that this step overwrites have been read. A wait is for the latest record of an event, so
// both wait before either launches. In the first step, nothing is recorded, and no wait.
void steps(Slab (&slabs)[2], int count) {
    for (; count > 0; --count) {
        for (int r = 0; r < 2; ++r)
            CHECK(cudaStreamWaitEvent(slabs[r].stream, slabs[1 - r].swept));
        for (int r = 0; r < 2; ++r) {
            const Slab &s = slabs[r], &other = slabs[1 - r];
            float* const behind = other.out + (kRadius + other.local.planes) * s.local.plane();
            CHECK(cudaSetDevice(s.device));
            const day50::Neighbours to{r == 0 ? nullptr : behind, r == 0 ? other.out : nullptr};
            day50::launch_sweep_and_store(s.in, s.out, s.local, to, s.stream);
            CHECK(cudaEventRecord(s.swept, s.stream));
        }
        for (Slab& s : slabs)
            std::swap(s.in, s.out);
    }
    for (const Slab& s : slabs)
        CHECK(cudaStreamSynchronize(s.stream));
}

// One step of a cube of n^3 cells on the CPU.
void step_on_cpu(const std::vector<double>& in, std::vector<double>& out, size_t n) {
    for (size_t i = 0; i < n * n * n; ++i) {
        const auto [nearest, farthest] = std::minmax({i % n, i / n % n, i / n / n});  // coordinates
        if (nearest < kRadius || farthest >= n - kRadius) continue;
        out[i] = kWeights.centre * in[i];
        for (size_t d = 1; d <= kRadius; ++d)
            for (const size_t far : {d, d * n, d * n * n})
                out[i] += kWeights.at[d - 1] * (in[i - far] + in[i + far]);
    }
}

int main(int argc, char** argv) {
    constexpr int kSteps = 3;
    char* end = nullptr;
    const int n = argc > 1 ? static_cast<int>(std::strtol(argv[1], &end, 10)) : 48;
    if ((end != nullptr && *end != '\0') || n < 4 * kRadius || n > 600) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from %d to 600\n", argv[1], 4 * kRadius);
        return 2;
    }
    const size_t plane = size_t(n) * n, ghosts = kRadius * plane;
    std::vector<float> grid(n * plane), got(n * plane);
    for (size_t i = 0; i < grid.size(); ++i)
        grid[i] = static_cast<float>(i * 7 % 101) / 50 - 1;
    int devices, peers = 0;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices > 1) CHECK(cudaDeviceCanAccessPeer(&peers, 0, 1));
    Slab slabs[2];
    for (int r = 0; r < 2; ++r) {
        Slab& s = slabs[r];
        s.device = r * peers;
        s.local = {n, n, r == 0 ? n / 2 : n - n / 2, r * (n / 2), n};
        CHECK(cudaSetDevice(s.device));
        if (peers != 0) CHECK(cudaDeviceEnablePeerAccess(1 - r, 0));
        const size_t bytes = (s.local.planes * plane + ghosts) * sizeof(float);
        for (float** memory : {&s.in, &s.out}) {
            CHECK(cudaMalloc(memory, bytes + ghosts * sizeof(float)));
            CHECK(cudaMemset(*memory, 0xff, bytes + ghosts * sizeof(float)));  // NaN
        }
        // The slab, and its ghost planes on the side of the other slab.
        CHECK(cudaMemcpy(s.in + (1 - r) * ghosts, &grid[r * (s.local.first * plane - ghosts)], bytes,
                         cudaMemcpyHostToDevice));
        CHECK(cudaStreamCreate(&s.stream));
        CHECK(cudaEventCreateWithFlags(&s.swept, cudaEventDisableTiming));
    }
    steps(slabs, kSteps);  // the first launch also loads the kernel
    const auto start = std::chrono::steady_clock::now();
    steps(slabs, kSteps);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    std::vector<double> expected(grid.begin(), grid.end()), before = expected;
    for (int k = 0; k < 2 * kSteps; ++k, std::swap(expected, before))
        step_on_cpu(before, expected, n);
    for (const Slab& s : slabs)
        CHECK(cudaMemcpy(&got[s.local.first * plane], s.in + ghosts, s.local.planes * plane * sizeof(float),
                         cudaMemcpyDeviceToHost));
    long wrong = 0;
    for (size_t i = 0; i < got.size(); ++i)
        wrong += std::abs(got[i] - before[i]) <= 1e-5 ? 0 : 1;  // NaN is wrong, too
    std::printf("%d^3 cells on %d GPU(s): %ld wrong, %.3f ms a step, %.1f GB/s\n", n, 1 + peers, wrong,
                time.count() / kSteps, 8e-6 * got.size() * kSteps / time.count());
    return wrong == 0 ? 0 : 1;
}
