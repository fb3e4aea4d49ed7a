// Day 42 as one program: multiplies two matrices of 8-bit integers on tensor cores, checks the
// product and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu -arch=sm_80 && ./a.out 8192 8192 8192   in this folder; sm_80 or newer
//   ./course run day42 --program                                            anywhere
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "eight_bits.cuh"

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
    const long long rows = given ? number(argv[1], kMost) : 500;
    const long long cols = given ? number(argv[2], kMost) : 384;
    const long long depth = given ? number(argv[3], kMost) : 512;
    if ((argc != 1 && !given) || rows == 0 || cols == 0 || depth == 0) {
        std::fprintf(stderr, "expected ROWS COLS DEPTH, three whole numbers from 1 to %lld\n", kMost);
        return 2;
    }
    // C = A B^T: B has a row for each column of C.
    std::vector<std::int8_t> a(rows * depth), b(cols * depth);
    std::vector<std::int32_t> c(rows * cols);
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<std::int8_t>(i % 251 - 125);
    for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = static_cast<std::int8_t>(i % 241 - 120);

    std::int8_t *device_a, *device_b;
    std::int32_t* device_c;
    CHECK(cudaMalloc(&device_a, a.size()));
    CHECK(cudaMalloc(&device_b, b.size()));
    CHECK(cudaMalloc(&device_c, c.size() * sizeof(c[0])));
    CHECK(cudaMemset(device_c, 0xff, c.size() * sizeof(c[0])));  // an element that is not written stays -1
    CHECK(cudaMemcpy(device_a, a.data(), a.size(), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), b.size(), cudaMemcpyHostToDevice));
    const DeviceMatrix<const std::int8_t> a_view = matrix_at(device_a, rows, depth);
    const DeviceMatrix<const std::int8_t> b_view = matrix_at(device_b, cols, depth);
    const day42::Output<std::int8_t> out = course::make_output(matrix_at(device_c, rows, cols), 1, 0);

    // cp.async copies 16 bytes at a time if all rows start at multiples of 16 elements.
    const auto launch = depth % 16 == 0 ? day42::launch_bytes_mma_sync<std::int8_t, true>
                                        : day42::launch_bytes_mma_sync<std::int8_t, false>;
    // The first launch also loads the kernel, so the second one is timed.
    launch(a_view, b_view, out, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    launch(a_view, b_view, out, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    // About a thousand elements of C, spread over it, are computed again on the CPU.
    CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(c[0]), cudaMemcpyDeviceToHost));
    std::size_t wrong = 0, checked = 0;
    for (std::size_t i = 0; i < c.size(); i += c.size() / 1000 + 1) {
        std::int32_t expected = 0;
        for (long long k = 0; k < depth; ++k)
            expected += a[i / cols * depth + k] * b[i % cols * depth + k];
        ++checked;
        if (c[i] != expected) ++wrong;
    }
    std::printf("%lld x %lld x %lld: %zu of %zu elements wrong, %.3f ms, %.2f TOP/s\n", rows, cols, depth,
                wrong, checked, ms, 2e-9 * rows * cols * depth / ms);
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_c));
    return wrong == 0 ? 0 : 1;
}
