// Day 16 as one program: the prefix sums of n floats, checked, and the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000000        in this folder, with a GPU
//   ./course run day16 --program                                anywhere
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "scan.cuh"

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
    // Small whole numbers around 0: floats add them exactly, so every sum can be compared.
    std::vector<float> in(n), out(n);
    for (long long i = 0; i < n; ++i)
        in[i] = static_cast<float>(i % 7 - 3);

    float *device_in, *device_out, *sums;
    CHECK(cudaMalloc(&device_in, n * sizeof(float)));
    CHECK(cudaMalloc(&device_out, n * sizeof(float)));
    CHECK(cudaMemset(device_out, 0xff, n * sizeof(float)));     // an element that is not written stays NaN
    CHECK(cudaMalloc(&sums, (n / 1024 + 16) * sizeof(float)));  // of sections of 2,048, and of their sections
    CHECK(cudaMemcpy(device_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    // The first launch also loads the kernels, so the second one is timed.
    day16::launch_coarsened(device_in, device_out, n, sums, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day16::launch_coarsened(device_in, device_out, n, sums, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(out.data(), device_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    float sum = 0;
    for (long long i = 0; i < n; ++i) {
        sum += in[i];
        if (out[i] == sum) continue;
        std::printf("out[%lld] is %g; expected %g\n", i, out[i], sum);
        return 1;
    }
    std::printf("n %lld: all sums right, %.3f ms, %.1f GB/s\n", n, ms,
                2e-6 * static_cast<double>(n) * sizeof(float) / ms);
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_out));
    CHECK(cudaFree(sums));
}
