// Day 32 as one program: a linear layer, most of it in 8 bits, with two outlier columns. Prints the
// time and the error, with and without a threshold.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 2048             in this folder, with a GPU
//   ./course run day32 --program                                anywhere
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "llm_int8.cuh"

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

constexpr std::size_t kInputs = 512;
constexpr std::size_t kOutputs = 128;

// rows x cols elements of device memory until the program ends, all bytes 0xff: halves and floats
// that are not written stay NaN.
template <class T>
course::DeviceMatrix<T> allocate(std::size_t rows, std::size_t cols) {
    T* data;
    CHECK(cudaMalloc(&data, rows * cols * sizeof(T)));
    CHECK(cudaMemset(data, 0xff, rows * cols * sizeof(T)));
    return {course::DeviceSpan<T>::from_device_pointer(data, rows * cols), rows, cols};
}

int main(int argc, char** argv) {
    constexpr long long kMost = 100'000;
    const std::size_t tokens = argc > 1 ? number(argv[1], kMost) : 100;
    if (tokens == 0) {
        std::fprintf(stderr, "TOKENS is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    std::vector<__half> x(tokens * kInputs), w(kOutputs * kInputs), y(tokens * kOutputs);
    std::mt19937 random(32);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = __float2half(normal(random) * (i % kInputs == 77 || i % kInputs == 400 ? 60 : 1));
    for (__half& value : w)
        value = __float2half(normal(random) / 16);

    const auto device_x = allocate<__half>(tokens, kInputs), device_w = allocate<__half>(kOutputs, kInputs);
    const auto x8 = allocate<std::int8_t>(tokens, kInputs), w8 = allocate<std::int8_t>(kOutputs, kInputs);
    const auto x_scale = allocate<float>(1, tokens), w_scale = allocate<float>(1, kOutputs);
    const auto keep = allocate<std::uint16_t>(1, kInputs);
    const auto columns = allocate<std::uint32_t>(1, kInputs), count = allocate<std::uint32_t>(1, 1);
    const auto x_outliers = allocate<__half>(tokens, kInputs),
               w_outliers = allocate<__half>(kOutputs, kInputs);
    const auto sums = allocate<std::int32_t>(tokens, kOutputs);
    const auto device_y = allocate<__half>(tokens, kOutputs);
    const day32::Outliers outliers{columns.data(), count.data(), x_outliers.data(), w_outliers.data(),
                                   kInputs};
    CHECK(cudaMemcpy(device_x.data(), x.data(), x.size() * sizeof(__half), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_w.data(), w.data(), w.size() * sizeof(__half), cudaMemcpyHostToDevice));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    const auto quantize = day32::launch_kept_row_in_registers<true, 128>;
    quantize(device_w, keep.data(), w8, w_scale.data(), nullptr);  // once, with all columns: 0xffff

    // The first layer also loads the kernels, so look at the time of the second one.
    for (const float threshold : {INFINITY, 6.0f}) {
        CHECK(cudaEventRecord(start));
        CHECK(cudaMemsetAsync(keep.data(), 0xff, kInputs * sizeof(std::uint16_t)));
        day32::launch_mark_outliers<true>(device_x, threshold, keep.data(), nullptr);
        day32::launch_list_outliers(keep.data(), kInputs, columns.data(), count.data(), nullptr);
        quantize(device_x, keep.data(), x8, x_scale.data(), nullptr);
        day32::launch_gather_outliers(device_x, device_w, outliers, nullptr);
        day32::launch_plain_product(x8, w8, sums.data(), nullptr);
        day32::launch_dequantize_sums(sums.data(), tokens, kOutputs, x_scale.data(), w_scale.data(), nullptr);
        day32::launch_add_outliers(sums.data(), outliers, device_y, nullptr);
        CHECK(cudaEventRecord(stop));
        CHECK(cudaGetLastError());
        CHECK(cudaEventSynchronize(stop));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        CHECK(cudaMemcpy(y.data(), device_y.data(), y.size() * sizeof(__half), cudaMemcpyDeviceToHost));

        double difference = 0, size = 0;  // of a sample of the tokens (day 25), squared
        for (std::size_t row = 0; row < tokens; row += std::max<std::size_t>(1, tokens / 64)) {
            for (std::size_t col = 0; col < kOutputs; ++col) {
                double exact = 0;
                for (std::size_t k = 0; k < kInputs; ++k)
                    exact += static_cast<double>(__half2float(x[row * kInputs + k])) *
                             __half2float(w[col * kInputs + k]);
                difference += std::pow(__half2float(y[row * kOutputs + col]) - exact, 2);
                size += exact * exact;
            }
        }
        const double error = std::sqrt(difference / size);
        std::printf("%zu tokens, threshold %g: relative error %.4f, %.3f ms\n", tokens, threshold, error, ms);
        if (!(error < (threshold == 6 ? 0.01 : 0.1))) return 1;  // a NaN is not less
    }
}
