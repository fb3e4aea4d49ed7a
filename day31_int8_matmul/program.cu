// Day 31 as one program: C = A W^T of 8-bit integers, summed in 32 bits. Checks the result and
// prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu -arch=sm_75 && ./a.out 4096    in this folder, with a GPU
//   ./course run day31 --program                                    anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "int8_matmul.cuh"

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

// n x n elements of device memory.
template <class T>
course::DeviceMatrix<T> matrix(T* data, std::size_t n) {
    return {course::DeviceSpan<T>::from_device_pointer(data, n * n), n, n};
}

int main(int argc, char** argv) {
    constexpr long long kMost = 32768;
    const std::size_t n = argc > 1 ? number(argv[1], kMost) : 256;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    std::vector<std::int8_t> a(n * n), w(n * n);
    std::vector<std::int32_t> c(n * n);
    std::mt19937 random(31);
    for (std::vector<std::int8_t>* in : {&a, &w})
        for (std::int8_t& x : *in)
            x = static_cast<std::int8_t>(random());

    std::int8_t *device_a, *device_w;
    std::int32_t* device_c;
    CHECK(cudaMalloc(&device_a, n * n));
    CHECK(cudaMalloc(&device_w, n * n));
    CHECK(cudaMalloc(&device_c, n * n * sizeof(std::int32_t)));
    CHECK(cudaMemcpy(device_a, a.data(), n * n, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_w, w.data(), n * n, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_c, 0x7f, n * n * sizeof(std::int32_t)));  // more than any sum

    // Loads of 16 bytes need rows that start at multiples of 16 bytes.
    const auto launch = n % 16 == 0 ? day31::launch_dp4a<true> : day31::launch_dp4a<false>;
    const course::DeviceMatrix<const std::int8_t> in_a = matrix(device_a, n);
    const course::DeviceMatrix<const std::int8_t> in_w = matrix(device_w, n);

    // The first launch also loads the kernel, so the second one is timed.
    launch(in_a, in_w, matrix(device_c, n), nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    launch(in_a, in_w, matrix(device_c, n), nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    // Sums of integers are exact. Of a large matrix some rows are checked.
    CHECK(cudaMemcpy(c.data(), device_c, n * n * sizeof(std::int32_t), cudaMemcpyDeviceToHost));
    for (std::size_t row = 0; row < n; row += std::max<std::size_t>(1, n / 256)) {
        for (std::size_t col = 0; col < n; ++col) {
            std::int32_t sum = 0;
            for (std::size_t k = 0; k < n; ++k)
                sum += a[row * n + k] * w[col * n + k];
            if (c[row * n + col] == sum) continue;
            std::printf("C[%zu][%zu] is %d; expected %d\n", row, col, c[row * n + col], sum);
            return 1;
        }
    }
    const double operations = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    std::printf("%zu x %zu: all sums right, %.3f ms, %.1f G operations/s\n", n, n, ms,
                1e-6 * operations / ms);
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_w));
    CHECK(cudaFree(device_c));
}
