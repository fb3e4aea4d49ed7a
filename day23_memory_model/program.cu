// Day 23 as one program: the record of n ints in one launch, checked, and the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000000        in this folder, with a GPU
//   ./course run day23 --program                                anywhere
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "memory_model.cuh"

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
    const long long n = argc > 1 ? number(argv[1], kMost) : 200'000;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    // The smallest element is at n / 2.
    std::vector<int> in(n);
    for (long long i = 0; i < n; ++i)
        in[i] = static_cast<int>(i % 1000);
    in[n / 2] = -1;

    int* device_in;
    day23::Record *total, *records;
    day23::Board* board;
    const long long tiles = (n + day23::kTile - 1) / day23::kTile;
    CHECK(cudaMalloc(&device_in, n * sizeof(int)));
    CHECK(cudaMalloc(&total, sizeof(day23::Record)));
    CHECK(cudaMalloc(&records, tiles * sizeof(day23::Record)));  // one for each block
    CHECK(cudaMalloc(&board, sizeof(day23::Board) + tiles * sizeof(unsigned)));
    CHECK(cudaMemcpy(device_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));

    // The first launch also loads the kernel, so the second one is timed.
    day23::launch_last_block(device_in, n, total, board, records, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day23::launch_last_block(device_in, n, total, board, records, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    day23::Record expected{};
    for (long long i = 0; i < n; ++i)
        expected = combined(expected, {1, in[i], in[i], i});
    day23::Record got;
    CHECK(cudaMemcpy(&got, total, sizeof(got), cudaMemcpyDeviceToHost));
    const bool is_right = got == expected;
    std::printf("%lld ints, sum %lld, the smallest is %lld at %lld: %s, %.3f ms, %.1f GB/s\n", got.count,
                got.sum, got.least, got.where, is_right ? "right" : "WRONG", ms,
                1e-6 * static_cast<double>(n) * sizeof(int) / ms);
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(total));
    CHECK(cudaFree(records));
    CHECK(cudaFree(board));
    return is_right ? 0 : 1;
}
