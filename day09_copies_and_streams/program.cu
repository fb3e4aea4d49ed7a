// Day 9 as one program: n floats to the GPU and back, in chunks that overlap, checked.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 67108864       in this folder, with a GPU
//   ./course run day09 --program                                anywhere
#include <cuda_runtime.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "copies_and_streams.cuh"

// Every CUDA call can fail: check each one.
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (false)

// The whole number from 1 to `most` that `text` is; 0 if it is none, as 1e9 is.
long long number(const char* text, long long most) {
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    return *end == '\0' && value >= 1 && value <= most ? value : 0;
}

int main(int argc, char** argv) {
    constexpr long long kMost = 1'000'000'000;
    const long long n = argc > 1 ? number(argv[1], kMost) : 1'000'000;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    const std::size_t bytes = n * sizeof(float);
    float *in, *out;  // pinned, so that copies can overlap with kernels
    CHECK(cudaMallocHost(&in, bytes));
    CHECK(cudaMallocHost(&out, bytes));
    for (long long i = 0; i < n; ++i) {
        in[i] = static_cast<float>(i % 1000);
        out[i] = NAN;  // an element that nothing writes stays NaN
    }

    day09::Device device{};
    CHECK(cudaMalloc(&device.in, bytes));
    CHECK(cudaMalloc(&device.out, bytes));
    CHECK(cudaEventCreateWithFlags(&device.start, cudaEventDisableTiming));
    for (int s = 0; s < day09::kStreams; ++s) {
        CHECK(cudaStreamCreateWithFlags(&device.streams[s], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&device.done[s], cudaEventDisableTiming));
    }

    // The first job also loads the kernel, so the second one is timed, by the host's clock: it
    // starts and ends there.
    const day09::Job job{.in = in, .out = out, .n = static_cast<std::size_t>(n), .steps = 16, .chunks = 8};
    day09::chunked_streams(job, device);
    const auto start = std::chrono::steady_clock::now();
    day09::chunked_streams(job, device);
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;

    long long wrong = 0;
    for (long long i = 0; i < n; ++i) {
        float expected = in[i];
        for (int step = 0; step < job.steps; ++step)
            expected = std::fma(day09::kFactor, expected, day09::kAddend);
        wrong += !(out[i] == expected);
    }
    std::printf("n %lld: %lld wrong values, %.3f ms, %.1f GB/s in each direction\n", n, wrong, ms.count(),
                1e-6 * static_cast<double>(bytes) / ms.count());
    for (int s = 0; s < day09::kStreams; ++s) {
        CHECK(cudaStreamDestroy(device.streams[s]));
        CHECK(cudaEventDestroy(device.done[s]));
    }
    CHECK(cudaEventDestroy(device.start));
    CHECK(cudaFree(device.in));
    CHECK(cudaFree(device.out));
    CHECK(cudaFreeHost(in));
    CHECK(cudaFreeHost(out));
    return wrong != 0;
}
