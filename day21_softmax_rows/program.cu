// Day 21 as one program: the softmax of each row of a matrix, checked, with the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 8192 8192        in this folder, with a GPU
//   ./course run day21 --program                                anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "softmax_rows.cuh"

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
    constexpr long long kMostRows = 1'000'000;
    const long long rows = argc > 1 ? number(argv[1], kMostRows) : 256;
    const long long cols = argc > 2 ? number(argv[2], day21::kBlockCols) : 1000;
    if (rows == 0 || cols == 0) {
        std::fprintf(stderr, "expected ROWS COLS, whole numbers from 1 to %lld and to %zu\n", kMostRows,
                     day21::kBlockCols);
        return 2;
    }
    const std::size_t n = rows * cols;
    std::vector<float> in(n), out(n);
    for (std::size_t i = 0; i < n; ++i)
        in[i] = static_cast<float>(i * 7919 % 2003) / 100 - 10;

    float *device_in, *device_out;
    CHECK(cudaMalloc(&device_in, n * sizeof(float)));
    CHECK(cudaMalloc(&device_out, n * sizeof(float)));
    CHECK(cudaMemset(device_out, 0xff, n * sizeof(float)));  // an element that is not written stays NaN
    CHECK(cudaMemcpy(device_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    // false: rows may start at any multiple of 4 bytes.
    const auto softmax = [&] {
        day21::launch_block_per_row<day21::Output::kSoftmax, false>(device_in, cols, device_out, cols, rows,
                                                                    static_cast<int>(cols), nullptr);
    };
    // The first launch also loads the kernel, so the second one is timed.
    softmax();
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    softmax();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    CHECK(cudaMemcpy(out.data(), device_out, n * sizeof(float), cudaMemcpyDeviceToHost));

    double worst = 0;  // the largest relative error
    for (long long row = 0; row < rows; ++row) {
        const float* x = &in[row * cols];
        const double max = *std::max_element(x, x + cols);
        double sum = 0;
        for (long long i = 0; i < cols; ++i)
            sum += std::exp(x[i] - max);
        for (long long i = 0; i < cols; ++i) {
            const double expected = std::exp(x[i] - max) / sum;
            const double error = std::abs(out[row * cols + i] - expected) / expected;
            worst = error > worst || std::isnan(error) ? error : worst;
        }
    }
    std::printf("%lld x %lld: largest relative error %.2g, %.3f ms, %.1f GB/s\n", rows, cols, worst, ms,
                2e-6 * static_cast<double>(n) * sizeof(float) / ms);
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_out));
    return worst < 1e-5 ? 0 : 1;
}
