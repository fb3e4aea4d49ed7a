// Day 5 as one program: multiplies two matrices, checks the product and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 4096 4096 4096   in this folder, with a GPU
//   ./course run day05 --program                                anywhere
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "matmul_tiled.cuh"

using course::DeviceMatrix;
using course::DeviceSpan;

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

// A rows x cols matrix at `data`, a device pointer, without gaps between the rows.
template <class T>
DeviceMatrix<T> matrix_at(T* data, std::size_t rows, std::size_t cols) {
    return {DeviceSpan<T>::from_device_pointer(data, rows * cols), rows, cols};
}

int main(int argc, char** argv) {
    constexpr long long kMost = 65535 * day05::kTile;  // of one grid
    const bool given = argc == 4;
    const long long rows = given ? number(argv[1], kMost) : 300;
    const long long cols = given ? number(argv[2], kMost) : 200;
    const long long depth = given ? number(argv[3], kMost) : 250;
    if ((argc != 1 && !given) || rows == 0 || cols == 0 || depth == 0) {
        std::fprintf(stderr, "expected ROWS COLS DEPTH, three whole numbers from 1 to %lld\n", kMost);
        return 2;
    }
    // Small whole numbers: while a sum is below 2^24, a float holds it exactly.
    std::vector<float> a(rows * depth), b(depth * cols), c(rows * cols);
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<float>(i % 7) - 3;
    for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = static_cast<float>(i % 5) - 2;

    float *device_a, *device_b, *device_c;
    CHECK(cudaMalloc(&device_a, a.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_b, b.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
    CHECK(cudaMemset(device_c, 0xff, c.size() * sizeof(float)));  // an element that is not written stays NaN
    CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
    const DeviceMatrix<const float> a_view = matrix_at(device_a, rows, depth);
    const DeviceMatrix<const float> b_view = matrix_at(device_b, depth, cols);
    const DeviceMatrix<float> c_view = matrix_at(device_c, rows, cols);

    // The first launch also loads the kernel, so the second one is timed.
    day05::launch_coarsened(a_view, b_view, c_view, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day05::launch_coarsened(a_view, b_view, c_view, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    // About a thousand elements of C, spread over it, are computed again on the CPU.
    CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    std::size_t wrong = 0, checked = 0;
    for (std::size_t i = 0; i < c.size(); i += c.size() / 1000 + 1) {
        float expected = 0;
        for (long long k = 0; k < depth; ++k)
            expected += a[i / cols * depth + k] * b[k * cols + i % cols];
        ++checked;
        if (c[i] != expected) ++wrong;
    }
    std::printf("%lld x %lld x %lld: %zu of %zu elements wrong, %.3f ms, %.1f GFLOP/s\n", rows, cols, depth,
                wrong, checked, ms, 2e-6 * rows * cols * depth / ms);
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_c));
    return wrong == 0 ? 0 : 1;
}
