// Day 18 as one program: merges two sorted arrays, checks the result and prints the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000000        in this folder, with a GPU
//   ./course run day18 --program                                anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "merge.cuh"

using day18::Key;

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
    constexpr long long kMost = 2'000'000'000;  // a key is about as large as n, and has 31 bits
    const long long n = argc > 1 ? number(argv[1], kMost) : 200'000;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    // The output has n keys, a third of them from a. Each array ascends, in steps that vary.
    std::vector<Key> a(n / 3), b(n - n / 3);
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<Key>(3 * i + i % 3);
    for (std::size_t j = 0; j < b.size(); ++j)
        b[j] = static_cast<Key>(j + j / 1000);

    const std::size_t bytes_a = a.size() * sizeof(Key);
    const std::size_t bytes_b = b.size() * sizeof(Key);
    Key *device_a, *device_b, *device_out;
    CHECK(cudaMalloc(&device_a, bytes_a));
    CHECK(cudaMalloc(&device_b, bytes_b));
    CHECK(cudaMalloc(&device_out, bytes_a + bytes_b));
    CHECK(cudaMemcpy(device_a, a.data(), bytes_a, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), bytes_b, cudaMemcpyHostToDevice));

    // The first launch also loads the kernel, so the second one is timed.
    day18::launch_circular_buffer(device_a, a.size(), device_b, b.size(), device_out, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day18::launch_circular_buffer(device_a, a.size(), device_b, b.size(), device_out, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<Key> out(n), expected(n);
    CHECK(cudaMemcpy(out.data(), device_out, bytes_a + bytes_b, cudaMemcpyDeviceToHost));
    std::merge(a.begin(), a.end(), b.begin(), b.end(), expected.begin());
    const auto wrong = std::mismatch(out.begin(), out.end(), expected.begin()).first;
    if (wrong != out.end()) {
        std::printf("key %td is %d, which is wrong\n", wrong - out.begin(), *wrong);
        return 1;
    }
    // Every key is read once and written once.
    std::printf("n %lld: merged, %.3f ms, %.1f GB/s\n", n, ms,
                2e-6 * static_cast<double>(bytes_a + bytes_b) / ms);
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_out));
}
