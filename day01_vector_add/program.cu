// Day 1 as one program: adds two vectors, checks the sum and prints the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000000        in this folder, with a GPU
//   ./course run day01 --program                                anywhere
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "vector_add.cuh"

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
    const long long n = argc > 1 ? number(argv[1], kMost) : 1'000'003;  // not a multiple of four
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    std::vector<float> a(n), b(n), c(n);
    for (long long i = 0; i < n; ++i) {
        a[i] = static_cast<float>(i % 1000);
        b[i] = 0.5f * static_cast<float>(i % 7);
    }

    // cudaMalloc returns addresses that are multiples of 256, so float4 may be used.
    const std::size_t bytes = n * sizeof(float);
    float *device_a, *device_b, *device_c;
    CHECK(cudaMalloc(&device_a, bytes));
    CHECK(cudaMalloc(&device_b, bytes));
    CHECK(cudaMalloc(&device_c, bytes));
    CHECK(cudaMemset(device_c, 0xff, bytes));  // an element that is not written stays NaN
    CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));

    // The first launch also loads the kernel, so the second one is timed.
    day01::launch_float4(device_a, device_b, device_c, n, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day01::launch_float4(device_a, device_b, device_c, n, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    // One addition has one correctly rounded result, on a GPU as on a CPU: equal bits are expected.
    CHECK(cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost));
    long long wrong = 0;
    for (long long i = 0; i < n; ++i)
        if (c[i] != a[i] + b[i]) ++wrong;
    std::printf("n %lld: %lld elements wrong, %.3f ms, %.1f GB/s\n", n, wrong, ms,
                3e-6 * static_cast<double>(bytes) / ms);  // two vectors are read, one is written
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_c));
    return wrong == 0 ? 0 : 1;
}
