// Day 38 as one program: multiplies two matrices, with three tiles in flight, checks the product
// and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu -arch=sm_90 && ./a.out 4096 4096 4096   in this folder; sm_80 or newer
//   ./course run day38 --program                                            anywhere
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "async_pipeline.cuh"

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
    constexpr long long kMost = 65535;
    const bool given = argc == 4;
    const long long rows = given ? number(argv[1], kMost) : 1000;
    const long long cols = given ? number(argv[2], kMost) : 700;
    const long long depth = given ? number(argv[3], kMost) : 500;
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
    const day38::Operands operands{matrix_at<const float>(device_a, rows, depth),
                                   matrix_at<const float>(device_b, depth, cols),
                                   matrix_at(device_c, rows, cols)};

    // 16 bytes per copy if rows are whole float4s, else 4.
    const auto launch = depth % 4 == 0 && cols % 4 == 0 ? day38::launch_cp_async<4, day38::Silent>
                                                        : day38::launch_cp_async<1, day38::Silent>;
    // The first launch also loads the kernel, so the second one is timed.
    launch(operands, day38::Silent(), nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    launch(operands, day38::Silent(), nullptr);
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
