// Day 6 as one program: transposes a matrix, checks the result and prints the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 8192 8192        in this folder, with a GPU
//   ./course run day06 --program                                anywhere
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "transpose.cuh"

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
    constexpr long long kMostRows = 65535 * day06::kTile;  // of one grid
    constexpr long long kMost = 0x7fffffff;                // the kernel counts elements in an int
    const bool given = argc == 3;
    const long long rows = given ? number(argv[1], kMostRows) : 1000;
    const long long cols = given ? number(argv[2], kMost) : 700;
    if ((argc != 1 && !given) || rows == 0 || cols == 0 || cols > kMost / rows) {
        std::fprintf(
            stderr,
            "expected ROWS COLS, two whole numbers above 0, ROWS at most %lld, ROWS * COLS below 2^31\n",
            kMostRows);
        return 2;
    }
    const std::size_t count = static_cast<std::size_t>(rows * cols);
    const std::size_t bytes = count * sizeof(float);
    std::vector<float> in(count), out(count);
    for (std::size_t i = 0; i < count; ++i)
        in[i] = static_cast<float>(i % 1009);

    float *device_in, *device_out;
    CHECK(cudaMalloc(&device_in, bytes));
    CHECK(cudaMalloc(&device_out, bytes));
    CHECK(cudaMemset(device_out, 0xff, bytes));  // an element that is not written stays NaN
    CHECK(cudaMemcpy(device_in, in.data(), bytes, cudaMemcpyHostToDevice));
    const auto transpose = [=] {  // no gaps between rows: the leading dimensions are cols and rows
        day06::launch_coarsened(device_in, static_cast<int>(cols), device_out, static_cast<int>(rows),
                                static_cast<int>(rows), static_cast<int>(cols), nullptr);
    };

    transpose();  // the first launch also loads the kernel, so the second one is timed
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    transpose();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(out.data(), device_out, bytes, cudaMemcpyDeviceToHost));
    std::size_t wrong = 0;
    for (long long row = 0; row < rows; ++row)
        for (long long col = 0; col < cols; ++col)
            if (out[col * rows + row] != in[row * cols + col]) ++wrong;
    std::printf("%lld x %lld: %zu of %zu elements wrong, %.3f ms, %.1f GB/s\n", rows, cols, wrong, count, ms,
                2e-6 * static_cast<double>(bytes) / ms);  // each byte is read and written
    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_out));
    return wrong == 0 ? 0 : 1;
}
