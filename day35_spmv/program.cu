// Day 35 as one program: y = A x for a sparse matrix in JDS, checked, and the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 1000000        in this folder, with a GPU
//   ./course run day35 --program                              anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "spmv.cuh"

using day35::Index;
using day35::Offset;

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

template <class T>
T* copy_to_device(const std::vector<T>& host) {
    T* device;
    CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

// The matrix: n rows and n columns. Row r has 1 to 31 entries, in columns from the diagonal on.
Index row_length(Index row) {
    return 1 + static_cast<Index>(row * 7LL % 31);
}
Index column(Index row, Index k, Index n) {
    return static_cast<Index>((row + 3LL * k) % n);
}
float value(Index row, Index k) {
    return static_cast<float>((row + k) % 5 - 2);
}

int main(int argc, char** argv) {
    constexpr long long kMost = 50'000'000;
    const auto n = static_cast<Index>(argc > 1 ? number(argv[1], kMost) : 200'000);
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    // JDS: rows from the longest to the shortest; entry k of all rows that have one is diagonal k.
    std::vector<Index> order(n), cols;
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [](Index a, Index b) { return row_length(a) > row_length(b); });
    std::vector<Offset> diagonal_start = {0};
    std::vector<float> values;
    for (Index k = 0; k < row_length(order[0]); ++k) {
        for (Index i = 0; i < n && row_length(order[i]) > k; ++i) {
            cols.push_back(column(order[i], k, n));
            values.push_back(value(order[i], k));
        }
        diagonal_start.push_back(static_cast<Offset>(cols.size()));
    }
    // Small whole numbers: floats add them exactly, in any order.
    std::vector<float> x(n), y(n);
    for (Index i = 0; i < n; ++i)
        x[i] = static_cast<float>(i % 7 - 3);

    Index* device_order = copy_to_device(order);
    Offset* device_start = copy_to_device(diagonal_start);
    Index* device_cols = copy_to_device(cols);
    float* device_values = copy_to_device(values);
    float* device_x = copy_to_device(x);
    float* device_y = copy_to_device(y);
    const auto diagonals = static_cast<Index>(diagonal_start.size() - 1);
    const day35::JdsView a{n, diagonals, device_order, device_start, device_cols, device_values};
    CHECK(cudaMemset(device_y, 0xff, n * sizeof(float)));  // an element that is not written stays NaN

    // The first launch also loads the kernel, so the second one is timed.
    day35::launch_jds(a, device_x, device_y, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day35::launch_jds(a, device_x, device_y, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(y.data(), device_y, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (Index row = 0; row < n; ++row) {
        float sum = 0;
        for (Index k = 0; k < row_length(row); ++k)
            sum += value(row, k) * x[column(row, k, n)];
        if (y[row] == sum) continue;
        std::printf("y[%d] is %g; expected %g\n", row, y[row], sum);
        return 1;
    }
    // Each entry has 8 bytes. x is read and y is written once, and the order is read.
    const double bytes = 8.0 * static_cast<double>(values.size()) + 12.0 * n;
    std::printf("%d rows, %zu entries: all right, %.3f ms, %.1f GB/s, %.2f GFLOP/s\n", n, values.size(), ms,
                1e-6 * bytes / ms, 2e-6 * static_cast<double>(values.size()) / ms);
    for (void* array :
         std::vector<void*>{device_order, device_start, device_cols, device_values, device_x, device_y})
        CHECK(cudaFree(array));
}
