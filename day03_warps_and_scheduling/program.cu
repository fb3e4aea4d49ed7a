// Day 3 as one program: a polynomial with 256 coefficients at N points, checked; the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 16777216      in this folder, with a GPU
//   ./course run day03 --program                             anywhere
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "warps.cuh"

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
    const int n = argc > 1 ? static_cast<int>(number(argv[1], 1 << 30)) : 100'000;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to 2^30\n", argv[1]);
        return 2;
    }
    // Points from -0.9 to 0.9 and coefficients of at most 1, so that terms of high order are small.
    std::vector<float> x(n), coefficients(day03::kTerms);
    for (int i = 0; i < n; ++i)
        x[i] = static_cast<float>(i % 1801 - 900) / 1000;
    for (int k = 0; k < day03::kTerms; ++k)
        coefficients[k] = static_cast<float>(k % 7 - 3) / 3;

    float *device_x, *device_coefficients, *device_y;
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
    CHECK(cudaMalloc(&device_x, bytes));
    CHECK(cudaMalloc(&device_y, bytes));
    CHECK(cudaMemset(device_y, 0xff, bytes));  // an element that is not written stays NaN
    CHECK(cudaMalloc(&device_coefficients, day03::kTerms * sizeof(float)));
    CHECK(cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_coefficients, coefficients.data(), day03::kTerms * sizeof(float),
                     cudaMemcpyHostToDevice));

    // The first launch also loads the kernel, so the second one is timed.
    day03::launch_uniform(device_x, device_coefficients, device_y, n, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day03::launch_uniform(device_x, device_coefficients, device_y, n, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<float> y(n);
    CHECK(cudaMemcpy(y.data(), device_y, bytes, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        double expected = 0;
        for (int k = 0; k < day03::kTerms; ++k)
            expected = expected * x[i] + coefficients[k];
        // Written so that a NaN counts as wrong, too.
        if (!(std::abs(y[i] - expected) < 1e-4)) ++wrong;
    }
    std::printf("%d points: %d wrong values, %.3f ms, %.1f GFLOP/s\n", n, wrong, ms,
                2e-6 * day03::kTerms * static_cast<double>(n) / ms);
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(device_y));
    CHECK(cudaFree(device_coefficients));
    return wrong == 0 ? 0 : 1;
}
