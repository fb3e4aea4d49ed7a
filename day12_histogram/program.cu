// Day 12 as one program: counts n random bytes, checks the counts and prints the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000000        in this folder, with a GPU
//   ./course run day12 --program                                anywhere
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "histogram.cuh"

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
    constexpr long long kMost = 4'000'000'000;
    const long long n = argc > 1 ? number(argv[1], kMost) : 1'000'000;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    std::vector<std::uint8_t> values(n);
    std::vector<day12::Counter> expected(day12::kBins), counts(day12::kBins);
    std::mt19937 random(12);
    for (std::uint8_t& value : values) {
        value = static_cast<std::uint8_t>(random());
        ++expected[value];
    }

    std::uint8_t* device_values;
    day12::Counter* device_counts;
    const std::size_t count_bytes = counts.size() * sizeof(day12::Counter);
    CHECK(cudaMalloc(&device_values, n));
    CHECK(cudaMalloc(&device_counts, count_bytes));
    CHECK(cudaMemcpy(device_values, values.data(), n, cudaMemcpyHostToDevice));

    // The first launch also loads the kernel, so the second one is timed.
    day12::launch_aggregated(device_values, n, device_counts, nullptr);
    CHECK(cudaMemset(device_counts, 0, count_bytes));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day12::launch_aggregated(device_values, n, device_counts, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(counts.data(), device_counts, count_bytes, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int bin = 0; bin < day12::kBins; ++bin)
        wrong += counts[bin] != expected[bin];
    std::printf("n %lld: %d of %d counts wrong, %.3f ms, %.1f GB/s\n", n, wrong, day12::kBins, ms,
                1e-6 * static_cast<double>(n) / ms);
    CHECK(cudaFree(device_values));
    CHECK(cudaFree(device_counts));
    return wrong != 0;
}
