// Day 19 as one program: sorts n keys, checks the result and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000000        in this folder, with a GPU
//   ./course run day19 --program                                anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "sort.cuh"

using day19::Key;

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
    constexpr long long kMost = 2'000'000'000;
    const long long n = argc > 1 ? number(argv[1], kMost) : 40'000;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    std::vector<Key> keys(n);
    std::mt19937 random(19);
    for (Key& key : keys)
        key = static_cast<Key>(random());

    // What the passes need besides the keys: 16 counts for each block, and the sums of each 1,024
    // of these.
    const std::size_t tiles = course::ceil_div<std::size_t>(n, day19::kTile);
    const std::size_t num_counts = tiles * day19::kDigits;
    const std::size_t num_sums = course::ceil_div<std::size_t>(num_counts, day19::kScanBlock) + 1;
    Key *in, *out, *spare;
    unsigned* counts;
    std::size_t* sums;
    CHECK(cudaMalloc(&in, n * sizeof(Key)));
    CHECK(cudaMalloc(&out, n * sizeof(Key)));
    CHECK(cudaMalloc(&spare, n * sizeof(Key)));
    CHECK(cudaMalloc(&counts, num_counts * sizeof(unsigned)));
    CHECK(cudaMalloc(&sums, num_sums * sizeof(std::size_t)));
    CHECK(cudaMemcpy(in, keys.data(), n * sizeof(Key), cudaMemcpyHostToDevice));

    // The first launch also loads the kernels, so the second one is timed.
    day19::launch_radix_coarsened(in, n, out, spare, counts, sums, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day19::launch_radix_coarsened(in, n, out, spare, counts, sums, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<Key> sorted(n);
    CHECK(cudaMemcpy(sorted.data(), out, n * sizeof(Key), cudaMemcpyDeviceToHost));
    std::sort(keys.begin(), keys.end());
    const auto wrong = std::mismatch(sorted.begin(), sorted.end(), keys.begin()).first;
    if (wrong != sorted.end()) {
        std::printf("key %td is %u, which is wrong\n", wrong - sorted.begin(), *wrong);
        return 1;
    }
    // A pass reads every key twice and writes it once.
    const double bytes = 8.0 * 3.0 * static_cast<double>(n) * sizeof(Key);
    std::printf("n %lld: sorted, %.3f ms, %.3g keys/s, %.1f GB/s\n", n, ms, 1e3 * static_cast<double>(n) / ms,
                1e-6 * bytes / ms);
    for (void* const memory : {(void*)in, (void*)out, (void*)spare, (void*)counts, (void*)sums})
        CHECK(cudaFree(memory));
}
