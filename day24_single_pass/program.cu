// Day 24 as one program: the prefix sums of n ints in one pass, checked, and the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000000        in this folder, with a GPU
//   ./course run day24 --program                                anywhere
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "single_pass.cuh"

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
    // Small numbers around 0, so that every sum fits into an int.
    std::vector<int> in(n), out(n);
    for (long long i = 0; i < n; ++i)
        in[i] = static_cast<int>(i % 7 - 3);

    int *device_in, *device_out;
    CHECK(cudaMalloc(&device_in, n * sizeof(int)));
    CHECK(cudaMalloc(&device_out, n * sizeof(int)));
    CHECK(cudaMemset(device_out, 0x7f, n * sizeof(int)));  // an element that is not written stays huge
    // The ticket, and a word for each tile. The launch clears them.
    const long long tiles = (n + day24::kTile - 1) / day24::kTile;
    day24::Word* board;
    CHECK(cudaMalloc(&board, (1 + tiles) * sizeof(day24::Word)));
    CHECK(cudaMemcpy(device_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));

    // The first launch also loads the kernel, so the second one is timed.
    day24::launch_look_back_warp(device_in, device_out, n, board, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day24::launch_look_back_warp(device_in, device_out, n, board, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(out.data(), device_out, n * sizeof(int), cudaMemcpyDeviceToHost));
    int sum = 0;
    for (long long i = 0; i < n; ++i) {
        sum += in[i];
        if (out[i] == sum) continue;
        std::printf("out[%lld] is %d; expected %d\n", i, out[i], sum);
        return 1;
    }
    std::printf("n %lld: all sums right, %.3f ms, %.1f GB/s\n", n, ms,
                2e-6 * static_cast<double>(n) * sizeof(int) / ms);
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_out));
    CHECK(cudaFree(board));
}
