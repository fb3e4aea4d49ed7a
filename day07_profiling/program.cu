// Day 7 as one program: times mystery 2 slow and repaired beside a copy of as many bytes, its
// limit.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 8000000       in this folder, with a GPU
//   ./course run day07 --program                             anywhere
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/device/grid.hpp"
#include "mystery2.cuh"

// The slow file has the names of the repaired one, so here its namespace has another.
#define day07 day07_slow
#include "slow_kernels/mystery2.cuh"
#undef day07

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

// The time of one launch. The first one, which also loads the kernel, is not timed.
template <class Work>
double milliseconds(Work work) {
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    work();
    CHECK(cudaEventRecord(start));
    work();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    return ms;
}

int main(int argc, char** argv) {
    const long long rows = argc > 1 ? number(argv[1], 1LL << 26) : 10'000;
    if (rows == 0) {
        std::fprintf(stderr, "ROWS is '%s'; expected a whole number from 1 to 2^26\n", argv[1]);
        return 2;
    }
    const std::size_t n = static_cast<std::size_t>(rows);
    const std::size_t bytes = 32 * n * sizeof(float);
    std::vector<float> in(32 * n), out(32 * n);
    for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<float>(i % 7);

    float *device_in, *device_out;
    CHECK(cudaMalloc(&device_in, bytes));
    CHECK(cudaMalloc(&device_out, bytes));
    CHECK(cudaMemcpy(device_in, in.data(), bytes, cudaMemcpyHostToDevice));

    bool right = true;
    const auto show = [&](const char* name, auto work) {
        CHECK(cudaMemset(device_out, 0xff, bytes));  // an element that is not written stays NaN
        const double ms = milliseconds(work);
        std::printf("%-9s %8.3f ms, %7.1f GB/s\n", name, ms, 2e-6 * static_cast<double>(bytes) / ms);
        CHECK(cudaMemcpy(out.data(), device_out, bytes, cudaMemcpyDeviceToHost));
    };
    const auto check = [&] {  // small whole numbers: the sums are exact
        for (std::size_t i = 0; i < in.size(); ++i)
            right = right && out[i] == in[i] + (i % 32 == 0 ? 0 : out[i - 1]);
    };
    show("slow", [=] { day07_slow::mystery2(device_in, n, nullptr, device_out, nullptr); });
    check();
    show("repaired", [=] { day07::mystery2(device_in, n, nullptr, device_out, nullptr); });
    check();
    show("copy", [=] { CHECK(cudaMemcpy(device_out, device_in, bytes, cudaMemcpyDeviceToDevice)); });

    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_out));
    std::printf("%s\n", right ? "both sums are right" : "A SUM IS WRONG");
    return right ? 0 : 1;
}
