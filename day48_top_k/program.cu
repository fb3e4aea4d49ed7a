// Day 48 as one program: the k best elements of each row of a matrix of distances, without sorting
// the row. Checks every one, and prints the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 1024 1000000 128     in this folder, with a GPU
//   ./course run day48 --program                                    anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "top_k.cuh"

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
    const bool given = argc == 4;
    const long long rows = given ? number(argv[1], 1'000'000) : 64;
    const long long cols = given ? number(argv[2], 100'000'000) : 100'000;
    const long long k = given ? number(argv[3], std::min<long long>(day48::kMostSelected, cols)) : 128;
    if ((argc != 1 && !given) || rows == 0 || cols == 0 || k == 0) {
        std::fprintf(stderr,
                     "expected ROWS COLS K, whole numbers; COLS at most 10^8, K at most COLS and %u\n",
                     day48::kMostSelected);
        return 2;
    }
    // Many equal elements: of those, the one with the lowest column is better.
    std::vector<float> distances(rows * cols), values(rows * k);
    std::vector<std::uint32_t> indices(rows * k);
    for (float& distance : distances)
        distance = static_cast<float>(std::rand() % 10000) - 5000;

    float *device_distances, *device_values;
    std::uint32_t* device_indices;
    CHECK(cudaMalloc(&device_distances, distances.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_values, values.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_indices, indices.size() * sizeof(std::uint32_t)));
    CHECK(cudaMemset(device_indices, 0xff, indices.size() * sizeof(std::uint32_t)));  // none of the columns
    CHECK(cudaMemcpy(device_distances, distances.data(), distances.size() * sizeof(float),
                     cudaMemcpyHostToDevice));
    const day48::RowsOfDistances matrix{device_distances, static_cast<std::size_t>(cols), 1};  // the smallest

    // The first launch also loads the kernel, so the second one is timed.
    day48::launch_unfused(matrix, rows, k, device_values, device_indices, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day48::launch_unfused(matrix, rows, k, device_values, device_indices, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(values.data(), device_values, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(indices.data(), device_indices, indices.size() * sizeof(std::uint32_t),
                     cudaMemcpyDeviceToHost));
    std::vector<std::uint32_t> order(cols);
    for (long long row = 0; row < rows; ++row) {
        const float* const of_row = distances.data() + row * cols;
        std::iota(order.begin(), order.end(), 0u);
        std::partial_sort(order.begin(), order.begin() + k, order.end(),
                          [&](std::uint32_t a, std::uint32_t b) {
                              return of_row[a] != of_row[b] ? of_row[a] < of_row[b] : a < b;
                          });
        for (long long i = 0; i < k; ++i) {
            const long long at = row * k + i;
            if (indices[at] == order[i] && values[at] == of_row[order[i]]) continue;
            std::printf("row %lld: number %lld is column %u, %g; expected column %u, %g\n", row, i,
                        indices[at], values[at], order[i], of_row[order[i]]);
            return 1;
        }
    }
    std::printf("%lld rows of %lld: the %lld best right, %.3f ms, %.1f GB/s\n", rows, cols, k, ms,
                1e-6 * static_cast<double>(distances.size()) * sizeof(float) / ms);
    CHECK(cudaFree(device_distances));
    CHECK(cudaFree(device_values));
    CHECK(cudaFree(device_indices));
}
