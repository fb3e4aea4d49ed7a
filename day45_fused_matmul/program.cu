// Day 45 as one program: a batch of products C[i] = A[i] B[i] in one launch, by persistent blocks.
// Checks the result and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 256 256 256 256      in this folder, with a GPU
//   ./course run day45 --program                                    anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "fused_matmul.cuh"

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

// Small whole numbers: their sums of products are exact.
std::vector<float> whole_numbers(std::size_t count, unsigned seed) {
    std::vector<float> made(count);
    std::mt19937 random(seed);
    for (float& x : made)
        x = static_cast<float>(random() % 7) - 3;
    return made;
}

// A copy of `host` in device memory: `count` matrices of rows x cols, one after the other.
course::Batch<float> on_device(const std::vector<float>& host, std::size_t count, std::size_t rows,
                               std::size_t cols) {
    float* data;
    CHECK(cudaMalloc(&data, host.size() * sizeof(float)));
    CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
    const auto all = course::DeviceSpan<float>::from_device_pointer(data, host.size());
    return {.first = {all, rows, cols}, .count = count, .stride = rows * cols};
}

int main(int argc, char** argv) {
    const std::size_t count = argc > 1 ? number(argv[1], 4096) : 16;
    const std::size_t m = argc > 2 ? number(argv[2], 1024) : 150;
    const std::size_t n = argc > 3 ? number(argv[3], 1024) : m;
    const std::size_t k = argc > 4 ? number(argv[4], 1024) : m;
    if (count == 0 || m == 0 || n == 0 || k == 0) {
        std::fprintf(stderr, "expected whole numbers: COUNT to 4096, and M, N and K to 1024\n");
        return 2;
    }
    const std::vector<float> a = whole_numbers(count * m * k, 1);
    const std::vector<float> b = whole_numbers(count * k * n, 2);
    std::vector<float> c(count * m * n, NAN);  // what is not written stays NaN

    const course::Batch<float> device_a = on_device(a, count, m, k);
    const course::Batch<float> device_b = on_device(b, count, k, n);
    const course::Batch<float> device_c = on_device(c, count, m, n);
    const day45::BatchedMatmul matmul{
        .operands = {.a = {.first = device_a.first, .count = count, .stride = device_a.stride},
                     .b = {.first = device_b.first, .count = count, .stride = device_b.stride}},
        .c = device_c};
    // Version pipelined: tiles of 128 x 256, one block on an SM.
    const auto launch = [&] {
        day45::launch_multiply_tiles_in_turn<course::LargeTile, 1, true>(matmul, nullptr);
    };

    // The first launch also loads the kernel, so the second one is timed.
    launch();
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    launch();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(c.data(), device_c.first.data(), c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    const std::size_t step = std::max<std::size_t>(1, c.size() / 1'000'000);  // a million elements, or all
    for (std::size_t e = 0; e < c.size(); ++e) {
        if (e % step != 0 && !std::isnan(c[e])) continue;
        const std::size_t row = e / n, col = e % n;  // counted through all products
        float expected = 0;
        for (std::size_t i = 0; i < k; ++i)
            expected += a[row * k + i] * b[(row / m * k + i) * n + col];
        if (c[e] == expected) continue;
        std::printf("product %zu, row %zu, column %zu: %g; expected %g\n", row / m, row % m, col, c[e],
                    expected);
        return 1;
    }
    std::printf("%zu products of %zu x %zu x %zu: all right, %.3f ms, %.1f GFLOP/s\n", count, m, n, k, ms,
                2e-6 * static_cast<double>(count * m) * static_cast<double>(n * k) / ms);
}
