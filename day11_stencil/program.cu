// Day 11 as one program: heat spreads in a cube of n x n x n cells, checked, and the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 512              in this folder, with a GPU
//   ./course run day11 --program                                anywhere
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "stencil.cuh"

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

// One sweep on the CPU. It adds in the order of the kernels, so the results are equal bit for bit.
void sweep_on_cpu(const std::vector<float>& in, std::vector<float>& out, int n, const day11::Seven& k) {
    const std::size_t row = n, plane = row * n;
    out = in;  // cells of the boundary keep their values
    for (int z = 1; z < n - 1; ++z) {
        for (int y = 1; y < n - 1; ++y) {
            for (int x = 1; x < n - 1; ++x) {
                const std::size_t i = z * plane + y * row + x;
                float sum = k.centre * in[i];
                sum = std::fmaf(k.left, in[i - 1], sum);
                sum = std::fmaf(k.right, in[i + 1], sum);
                sum = std::fmaf(k.back, in[i - row], sum);
                sum = std::fmaf(k.front, in[i + row], sum);
                sum = std::fmaf(k.below, in[i - plane], sum);
                out[i] = std::fmaf(k.above, in[i + plane], sum);
            }
        }
    }
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? static_cast<int>(number(argv[1], 2000)) : 100;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to 2000\n", argv[1]);
        return 2;
    }
    const std::size_t cells = std::size_t(n) * n * n;
    const std::size_t bytes = cells * sizeof(float);
    // A cold cube with hot cells. The weights differ, so that a wrong neighbour changes the result.
    std::vector<float> heat(cells);
    for (std::size_t i = 0; i < cells; ++i)
        heat[i] = i % 97 == 0 ? 1.0f : 0.0f;
    const day11::Seven k{0.4f, 0.07f, 0.13f, 0.08f, 0.12f, 0.09f, 0.11f};

    float *in, *out;
    CHECK(cudaMalloc(&in, bytes));
    CHECK(cudaMalloc(&out, bytes));
    CHECK(cudaMemset(out, 0xff, bytes));  // an element that is not written stays NaN
    CHECK(cudaMemcpy(in, heat.data(), bytes, cudaMemcpyHostToDevice));

    // Two sweeps, from `in` to `out` and back. The first launch also loads the kernel, so the
    // second one is timed.
    const day11::Grid grid{n, n, n};
    day11::launch_register_tiled(in, out, grid, k, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day11::launch_register_tiled(out, in, grid, k, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<float> result(cells), once(cells), twice(cells);
    CHECK(cudaMemcpy(result.data(), in, bytes, cudaMemcpyDeviceToHost));
    sweep_on_cpu(heat, once, n, k);
    sweep_on_cpu(once, twice, n, k);
    for (std::size_t i = 0; i < cells; ++i) {
        if (result[i] == twice[i]) continue;
        std::printf("cell %zu is %g; expected %g\n", i, result[i], twice[i]);
        return 1;
    }
    // A sweep reads and writes each cell once.
    std::printf("%d x %d x %d: all cells right, %.3f ms, %.1f GB/s\n", n, n, n, ms,
                2e-6 * static_cast<double>(bytes) / ms);
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
}
