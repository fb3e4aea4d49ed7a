// Day 17 as one program: keeps the integers below a threshold, in order, checks them, and prints
// the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000000        in this folder, with a GPU
//   ./course run day17 --program                                anywhere
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "filter.cuh"

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
    // Values that jump up and down: about half of them are below the threshold, 0.
    std::vector<std::int32_t> in(n), expected;
    for (long long i = 0; i < n; ++i) {
        in[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(i) * 2654435761U);
        if (in[i] < 0) expected.push_back(in[i]);
    }

    std::int32_t *device_in, *device_out;
    day17::Count *counts, *device_count;
    CHECK(cudaMalloc(&device_in, n * sizeof(std::int32_t)));
    CHECK(cudaMalloc(&device_out, n * sizeof(std::int32_t)));
    CHECK(cudaMalloc(&counts, (n / day17::kBlock + 1) * sizeof(day17::Count)));  // one for each block
    CHECK(cudaMalloc(&device_count, sizeof(day17::Count)));
    CHECK(cudaMemcpy(device_in, in.data(), n * sizeof(std::int32_t), cudaMemcpyHostToDevice));

    // The first launch also loads the kernels, so the second one is timed.
    day17::launch_stable(device_in, n, 0, device_out, counts, device_count, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day17::launch_stable(device_in, n, 0, device_out, counts, device_count, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    day17::Count count;
    CHECK(cudaMemcpy(&count, device_count, sizeof count, cudaMemcpyDeviceToHost));
    if (count != expected.size()) {
        std::printf("count is %llu; expected %zu\n", count, expected.size());
        return 1;
    }
    std::vector<std::int32_t> out(count);
    CHECK(cudaMemcpy(out.data(), device_out, count * sizeof(std::int32_t), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (out[i] == expected[i]) continue;
        std::printf("out[%zu] is %d; expected %d\n", i, out[i], expected[i]);
        return 1;
    }
    // The least traffic: n elements are read, `count` are written.
    std::printf("n %lld: %llu kept, all right, %.3f ms, %.1f GB/s\n", n, count, ms,
                1e-6 * (static_cast<double>(n) + static_cast<double>(count)) * sizeof(std::int32_t) / ms);
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_out));
    CHECK(cudaFree(counts));
    CHECK(cudaFree(device_count));
}
