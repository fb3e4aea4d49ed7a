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

int main(int argc, char** argv) {
    const long long rows = argc > 2 ? std::atoll(argv[1]) : 1000;
    const long long cols = argc > 2 ? std::atoll(argv[2]) : 700;
    constexpr long long kMostRows = 65535 * day06::kTile;  // of one grid
    // The kernel counts elements in an int.
    if (rows <= 0 || cols <= 0 || rows > kMostRows || cols > 0x7fffffff / rows) {
        std::fprintf(stderr,
                     "usage: %s ROWS COLS, both above 0, ROWS at most %lld, fewer than 2^31 elements\n",
                     argv[0], kMostRows);
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
