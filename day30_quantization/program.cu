// Day 30 as one program: the rows of a matrix of halves to 8 bits, every code checked, and the
// bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 16384            in this folder, with a GPU
//   ./course run day30 --program                                anywhere
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "quantization.cuh"

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

constexpr std::size_t kCols = 4096;
constexpr int kRowThreads = 128;  // of a row, 32 values each

template <class T>
course::DeviceMatrix<T> matrix(T* data, std::size_t rows) {
    return {course::DeviceSpan<T>::from_device_pointer(data, rows * kCols), rows, kCols};
}

int main(int argc, char** argv) {
    constexpr long long kMost = 1'000'000;
    const std::size_t rows = argc > 1 ? number(argv[1], kMost) : 128;
    if (rows == 0) {
        std::fprintf(stderr, "ROWS is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    const std::size_t n = rows * kCols;
    std::vector<__half> in(n);
    std::vector<std::int8_t> out(n);
    std::vector<float> scale(rows);
    std::mt19937 random(30);
    for (__half& x : in)
        x = __float2half(static_cast<float>(random() % 20001) / 1000 - 10);

    __half* device_in;
    std::int8_t* device_out;
    float* device_scale;
    CHECK(cudaMalloc(&device_in, n * sizeof(__half)));
    CHECK(cudaMalloc(&device_out, n));
    CHECK(cudaMalloc(&device_scale, rows * sizeof(float)));
    CHECK(cudaMemset(device_out, 0x80, n));                       // -128, which is no symmetric code
    CHECK(cudaMemset(device_scale, 0xff, rows * sizeof(float)));  // a scale that is not written stays NaN
    CHECK(cudaMemcpy(device_in, in.data(), n * sizeof(__half), cudaMemcpyHostToDevice));
    const course::DeviceMatrix<const __half> x = matrix<const __half>(device_in, rows);
    const course::DeviceMatrix<std::int8_t> q = matrix(device_out, rows);

    // The first launch also loads the kernel, so the second one is timed.
    const auto launch = day30::launch_row_in_registers<__half, day30::Scheme::kSymmetric, true, kRowThreads>;
    launch(x, q, device_scale, nullptr, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    launch(x, q, device_scale, nullptr, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(out.data(), device_out, n, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(scale.data(), device_scale, rows * sizeof(float), cudaMemcpyDeviceToHost));
    for (std::size_t row = 0; row < rows; ++row) {
        const __half* const of_row = &in[row * kCols];
        float largest = 0;
        for (std::size_t col = 0; col < kCols; ++col)
            largest = std::max(largest, std::fabs(__half2float(of_row[col])));
        const float expected_scale = largest / 127;
        const double inverse = 1 / expected_scale;
        for (std::size_t col = 0; col < kCols; ++col) {
            const double expected = std::nearbyint(static_cast<double>(__half2float(of_row[col])) * inverse);
            if (scale[row] == expected_scale && out[row * kCols + col] == expected) continue;
            std::printf("row %zu has scale %g, and code %d in column %zu; expected %g and %g\n", row,
                        scale[row], out[row * kCols + col], col, expected_scale, expected);
            return 1;
        }
    }
    std::printf("%zu x %zu: all codes right, %.3f ms, %.1f GB/s\n", rows, kCols, ms,
                1e-6 * static_cast<double>(n * 3 + rows * sizeof(float)) / ms);
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_out));
    CHECK(cudaFree(device_scale));
}
