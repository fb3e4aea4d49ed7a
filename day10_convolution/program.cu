// Day 10 as one program: blurs a picture of SIZE x SIZE floats, checks it and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 8192          in this folder, with a GPU
//   ./course run day10 --program                             anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "convolution.cuh"

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
    const int size = argc > 1 ? static_cast<int>(number(argv[1], 30000)) : 512;
    if (size == 0) {
        std::fprintf(stderr, "SIZE is '%s'; expected a whole number from 1 to 30000\n", argv[1]);
        return 2;
    }
    constexpr int kTaps = 5;  // of the filter, in each direction
    const float binomial[kTaps] = {1, 4, 6, 4, 1};
    std::vector<float> weights(kTaps * kTaps);
    for (int i = 0; i < kTaps * kTaps; ++i)
        weights[i] = binomial[i / kTaps] * binomial[i % kTaps] / 256;

    // Whole numbers below 256, as in a grey image: float sums of them are exact here.
    const std::size_t n = static_cast<std::size_t>(size) * size;
    std::vector<float> in(n);
    for (std::size_t i = 0; i < n; ++i)
        in[i] = static_cast<float>(i * 37 % 251);

    float *device_in, *device_out, *device_weights;
    CHECK(cudaMalloc(&device_in, n * sizeof(float)));
    CHECK(cudaMalloc(&device_out, n * sizeof(float)));
    CHECK(cudaMemset(device_out, 0xff, n * sizeof(float)));  // an element that is not written stays NaN
    CHECK(cudaMalloc(&device_weights, weights.size() * sizeof(float)));
    CHECK(cudaMemcpy(device_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_weights, weights.data(), weights.size() * sizeof(float), cudaMemcpyHostToDevice));
    const day10::Source<float> source = {device_in,      static_cast<unsigned>(size), size, size, 1,
                                         day10::Border{}};
    const day10::Target<float> target = {device_out, static_cast<unsigned>(size)};
    const day10::Size filter = {kTaps, kTaps};

    // The first launch also loads the kernel, so the second one is timed.
    day10::launch_shared_halo(source, target, device_weights, filter, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day10::launch_shared_halo(source, target, device_weights, filter, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<float> out(n);
    CHECK(cudaMemcpy(out.data(), device_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    std::size_t wrong = 0;
    for (int row = 0; row < size; ++row) {
        for (int col = 0; col < size; ++col) {
            float expected = 0;
            for (int dy = 0; dy < kTaps; ++dy) {
                // Outside the image, the default border repeats its outermost values.
                const int y = std::clamp(row + dy - kTaps / 2, 0, size - 1);
                for (int dx = 0; dx < kTaps; ++dx) {
                    const int x = std::clamp(col + dx - kTaps / 2, 0, size - 1);
                    expected += weights[dy * kTaps + dx] * in[static_cast<std::size_t>(y) * size + x];
                }
            }
            if (out[static_cast<std::size_t>(row) * size + col] != expected) ++wrong;
        }
    }
    std::printf("%d x %d, filter 5 x 5: %zu wrong values, %.3f ms, %.1f GB/s, %.1f GFLOP/s\n", size, size,
                wrong, ms, 2e-6 * static_cast<double>(n) * sizeof(float) / ms,
                2e-6 * static_cast<double>(n) * kTaps * kTaps / ms);
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_out));
    CHECK(cudaFree(device_weights));
    return wrong == 0 ? 0 : 1;
}
