// Day 4 as one program: one thread follows lists of several sizes; the time of a load, for each.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 1000000       in this folder, with a GPU
//   ./course run day04 --program                             anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "memory_hierarchy.cuh"

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

// Follows a list of `lines` lines in random order for `steps` steps; prints the time of a step.
// Returns whether the list led to the right line.
bool measure(unsigned lines, unsigned steps) {
    std::vector<unsigned> order(lines);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), std::mt19937(4));
    std::vector<unsigned> next(lines);  // of each line, the word where its successor starts
    for (unsigned rank = 0; rank < lines; ++rank)
        next[order[rank]] = order[(rank + 1) % lines] * day04::kLine;

    // One word goes to the start of each line: `lines` rows of one word, copied to rows of a line.
    const std::size_t bytes_of_line = day04::kLine * sizeof(unsigned);
    unsigned *device_next, *device_last;
    CHECK(cudaMalloc(&device_next, lines * bytes_of_line));
    CHECK(cudaMalloc(&device_last, sizeof(unsigned)));
    CHECK(cudaMemset(device_next, 0, lines * bytes_of_line));
    CHECK(cudaMemcpy2D(device_next, bytes_of_line, next.data(), sizeof(unsigned), sizeof(unsigned), lines,
                       cudaMemcpyHostToDevice));

    // The first launch loads the kernel, and the list's lines into the caches, as far as they fit.
    // The second one goes on where the first one ended.
    const unsigned start = order[0] * day04::kLine;
    const unsigned middle = order[steps % lines] * day04::kLine;
    const unsigned end = order[2ULL * steps % lines] * day04::kLine;
    cudaEvent_t begun, ended;
    CHECK(cudaEventCreate(&begun));
    CHECK(cudaEventCreate(&ended));
    day04::launch_chase(device_next, lines, start, steps, device_last, nullptr);
    CHECK(cudaEventRecord(begun));
    day04::launch_chase(device_next, lines, middle, steps, device_last, nullptr);
    CHECK(cudaEventRecord(ended));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(ended));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, begun, ended));
    unsigned last;
    CHECK(cudaMemcpy(&last, device_last, sizeof last, cudaMemcpyDeviceToHost));
    std::printf("%9zu KB: %7.1f ns per load%s\n", lines * bytes_of_line / 1024, 1e6 * ms / steps,
                last == end ? "" : ", and a wrong line");
    CHECK(cudaFree(device_next));
    CHECK(cudaFree(device_last));
    CHECK(cudaEventDestroy(begun));
    CHECK(cudaEventDestroy(ended));
    return last == end;
}

int main(int argc, char** argv) {
    const unsigned steps = argc > 1 ? static_cast<unsigned>(number(argv[1], 1 << 30)) : 300'000;
    if (steps == 0) {
        std::fprintf(stderr, "STEPS is '%s'; expected a whole number from 1 to 2^30\n", argv[1]);
        return 2;
    }
    bool right = true;
    for (const unsigned lines : {64U, 512U, 4096U, 32768U, 262144U, 1U << 21})  // 8 KB to 256 MB
        right = measure(lines, steps) && right;
    return right ? 0 : 1;
}
