// Day 20 as one program: the softmax of one row of N floats, checked; the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 16777216      in this folder, with a GPU
//   ./course run day20 --program                             anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "softmax.cuh"

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
    constexpr long long kMost = 2'000'000'000;
    const long long n = argc > 1 ? number(argv[1], kMost) : 1'000'000;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    std::vector<float> x(n);
    for (long long i = 0; i < n; ++i)
        x[i] = static_cast<float>(i * 37 % 2001 - 1000) / 100;
    const double max = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (long long i = 0; i < n; ++i)
        sum += std::exp(x[i] - max);

    float *device_x, *device_y;
    day20::MaxSum* device_parts;
    CHECK(cudaMalloc(&device_x, n * sizeof(float)));
    CHECK(cudaMalloc(&device_y, n * sizeof(float)));
    CHECK(cudaMemset(device_y, 0xff, n * sizeof(float)));  // an element that is not written stays NaN
    CHECK(cudaMalloc(&device_parts, day20::parts_of(n) * sizeof(day20::MaxSum)));
    CHECK(cudaMemcpy(device_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    // The first launch also loads the kernels, so the second one is timed.
    constexpr auto kSoftmax = day20::Output::kSoftmax;
    day20::launch_online<kSoftmax>(device_x, device_y, device_parts, n, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day20::launch_online<kSoftmax>(device_x, device_y, device_parts, n, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<float> y(n);
    CHECK(cudaMemcpy(y.data(), device_y, n * sizeof(float), cudaMemcpyDeviceToHost));
    long long wrong = 0;
    for (long long i = 0; i < n; ++i) {
        const double expected = std::exp(x[i] - max) / sum;
        // Written so that a NaN counts as wrong, too.
        if (!(std::abs(y[i] - expected) < 2e-5 * expected)) ++wrong;
    }
    // The row is read once and written once at best.
    std::printf("n %lld: %lld wrong values, %.3f ms, %.1f GB/s\n", n, wrong, ms,
                2e-6 * static_cast<double>(n) * sizeof(float) / ms);
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(device_y));
    CHECK(cudaFree(device_parts));
    return wrong == 0 ? 0 : 1;
}
