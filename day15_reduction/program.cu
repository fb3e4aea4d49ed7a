// Day 15 as one program: adds up n floats, checks the sum and prints the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000000        in this folder, with a GPU
//   ./course run day15 --program                                anywhere
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "reduction.cuh"

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
    // Small whole numbers: while a sum is below 2^24, a float holds it exactly. Random ones: a sum
    // from which elements are missing differs.
    std::vector<float> in(n);
    std::mt19937 random(15);
    double expected = 0;
    for (float& x : in) {
        x = static_cast<float>(random() % 7) - 3;
        expected += x;
    }

    float *device_in, *device_out;
    CHECK(cudaMalloc(&device_in, n * sizeof(float)));
    CHECK(cudaMalloc(&device_out, sizeof(float)));
    CHECK(cudaMemcpy(device_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    // The first launch also loads the kernel, so the second one is timed.
    day15::launch_vectorised(device_in, n, device_out, 0, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day15::launch_vectorised(device_in, n, device_out, 0, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    float sum;
    CHECK(cudaMemcpy(&sum, device_out, sizeof(float), cudaMemcpyDeviceToHost));
    std::printf("n %lld: sum %.0f, expected %.0f, %.3f ms, %.1f GB/s\n", n, sum, expected, ms,
                1e-6 * static_cast<double>(n) * sizeof(float) / ms);
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_out));
    return sum == expected ? 0 : 1;
}
