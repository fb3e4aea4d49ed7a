// Day 9 as one program: n floats to the GPU, a kernel, and back, in one stream and in three.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 67108864 2048    in this folder, with a GPU
//   ./course run day09 --program                                anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

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

// `text` as a whole number from 1 to `most`; 0 if it is not one, such as 1e9.
long long number(const char* text, long long most) {
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    return *end == '\0' && value >= 1 && value <= most ? value : 0;
}

// Runs a version twice, because the first run also loads the kernel. Returns the milliseconds of
// the second one, or -1 if a result is wrong. `expected` is periodic, as the input is.
template <class Version>
double run(Version version, const day09::Job& job, const day09::Device& device, const float* expected,
           std::size_t period) {
    double ms = 0;
    for (int i = 0; i < 2; ++i) {
        std::fill_n(job.out, job.n, std::numeric_limits<float>::quiet_NaN());  // shows a missing wait
        const auto start = std::chrono::steady_clock::now();
        version(job, device);
        ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    for (std::size_t i = 0; i < job.n; ++i) {
        if (job.out[i] == expected[i % period]) continue;
        std::printf("out[%zu] is %g; expected %g\n", i, job.out[i], expected[i % period]);
        return -1;
    }
    return ms;
}

int main(int argc, char** argv) {
    constexpr long long kMost = 2'000'000'000;
    const long long n = argc > 1 ? number(argv[1], kMost) : 1'000'000;
    const long long steps = argc > 2 ? number(argv[2], 1'000'000) : 32;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    if (steps == 0) {
        std::fprintf(stderr, "STEPS is '%s'; expected a whole number from 1 to 1000000\n", argv[2]);
        return 2;
    }
    day09::Job job{.n = static_cast<std::size_t>(n), .steps = static_cast<int>(steps)};
    // Where a copy is as long as the kernel, this many are best: see the README.
    job.chunks = std::max(1, static_cast<int>(std::round(std::sqrt(2.0 * n * sizeof(float) / 262144))));

    constexpr std::size_t kPeriod = 1000;
    float* const in = day09::allocate_pinned(job.n);
    job.in = in;
    job.out = day09::allocate_pinned(job.n);
    for (std::size_t i = 0; i < job.n; ++i)
        in[i] = static_cast<float>(i % kPeriod);
    // The host fuses multiplication and addition as the device does, so the results are equal.
    float expected[kPeriod];
    for (std::size_t i = 0; i < kPeriod; ++i) {
        expected[i] = static_cast<float>(i);
        for (int step = 0; step < job.steps; ++step)
            expected[i] = std::fma(day09::kFactor, expected[i], day09::kAddend);
    }

    day09::Device device;
    CHECK(cudaMalloc(&device.in, job.n * sizeof(float)));
    CHECK(cudaMalloc(&device.out, job.n * sizeof(float)));
    CHECK(cudaEventCreateWithFlags(&device.start, cudaEventDisableTiming));
    for (int s = 0; s < day09::kStreams; ++s) {
        CHECK(cudaStreamCreateWithFlags(&device.streams[s], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&device.done[s], cudaEventDisableTiming));
    }

    const double one = run(day09::pinned_async, job, device, expected, kPeriod);
    const double three = run(day09::chunked_streams, job, device, expected, kPeriod);
    if (one < 0 || three < 0) return 1;
    std::printf(
        "n %lld, %lld steps: all results right; one stream %.3f ms, three streams %.3f ms, %.1f GB/s\n", n,
        steps, one, three, 2e-6 * static_cast<double>(n) * sizeof(float) / three);

    for (int s = 0; s < day09::kStreams; ++s) {
        CHECK(cudaStreamDestroy(device.streams[s]));
        CHECK(cudaEventDestroy(device.done[s]));
    }
    CHECK(cudaEventDestroy(device.start));
    CHECK(cudaFree(device.in));
    CHECK(cudaFree(device.out));
    CHECK(cudaFreeHost(in));
    CHECK(cudaFreeHost(job.out));
}
