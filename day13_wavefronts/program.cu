// Day 13 as one program: the edit distance of two sequences, checked, and cell updates per second.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 16384        in this folder, with a GPU
//   ./course run day13 --program                            anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "wavefronts.cuh"

using day13::Symbol;

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

// D(n, 0), ..., D(n, n), row after row.
std::vector<int> on_cpu(const std::vector<Symbol>& a, const std::vector<Symbol>& b) {
    std::vector<int> above(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        row[j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::swap(above, row);
        row[0] = static_cast<int>(i);
        for (std::size_t j = 1; j <= b.size(); ++j)
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0)});
    }
    return row;
}

int main(int argc, char** argv) {
    constexpr long long kMost = 65'536;
    const long long n = argc > 1 ? number(argv[1], kMost) : 1'000;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    std::mt19937 random(13);
    std::vector<Symbol> a(n), b(n);
    for (long long i = 0; i < n; ++i) {
        a[i] = static_cast<Symbol>("ACGT"[random() % 4]);
        b[i] = random() % 10 == 0 ? 'N' : a[i];
    }
    const std::vector<int> expected = on_cpu(a, b);

    const int length = static_cast<int>(n);
    Symbol *device_a, *device_b;
    day13::Borders borders;
    const std::size_t row_bytes = (n + 1) * sizeof(int);
    CHECK(cudaMalloc(&device_a, n));
    CHECK(cudaMalloc(&device_b, n));
    CHECK(cudaMalloc(&borders.row, row_bytes));
    CHECK(cudaMalloc(&borders.column, row_bytes));
    CHECK(cudaMalloc(&borders.corners, row_bytes));
    CHECK(cudaMemcpy(device_a, a.data(), n, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), n, cudaMemcpyHostToDevice));

    // The first call also loads the kernel, so the second one is timed.
    day13::launch_register_rows(device_a, length, device_b, length, borders, nullptr);
    CHECK(cudaMemset(borders.row, 0xff, row_bytes));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day13::launch_register_rows(device_a, length, device_b, length, borders, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<int> distances(n + 1);
    CHECK(cudaMemcpy(distances.data(), borders.row, row_bytes, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (long long j = 0; j <= n; ++j)
        wrong += distances[j] != expected[j];
    std::printf("n %lld: distance %d, %d of %lld prefixes wrong, %.3f ms, %.2f billion cells/s\n", n,
                distances[n], wrong, n + 1, ms, 1e-6 * static_cast<double>(n) * static_cast<double>(n) / ms);
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(borders.row));
    CHECK(cudaFree(borders.column));
    CHECK(cudaFree(borders.corners));
    return wrong != 0;
}
