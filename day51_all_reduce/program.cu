// Day 51 as one program: every GPU has an array of n floats, and gets the sum of all of them, by
// two_shot: one kernel for each GPU. Needs peer access; with one GPU, its array is the sum.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000000        in this folder, with one GPU or several
//   CUDA_ON_CPU_DEVICES=4 ./course run day51 --program          anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "all_reduce.cuh"

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
    const long long n = argc > 1 ? number(argv[1], kMost) : 1'000'000;
    if (n == 0) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    int ranks;
    CHECK(cudaGetDeviceCount(&ranks));
    ranks = std::min(ranks, day51::kMostRanks);

    // Each GPU reads and writes the memory of all others.
    day51::Team team{0, ranks, {}};
    day51::Pointers arrays{};
    cudaStream_t streams[day51::kMostRanks];
    int multiprocessors = 0;  // of the smallest GPU
    std::vector<float> values(n);
    for (int r = 0; r < ranks; ++r) {
        CHECK(cudaSetDevice(r));
        for (int other = 0; other < ranks; ++other) {
            int reaches = 0;
            if (other != r) CHECK(cudaDeviceCanAccessPeer(&reaches, r, other));
            if (other != r && reaches == 0) {
                std::printf("GPU %d cannot reach the memory of GPU %d: nothing is added\n", r, other);
                return 0;
            }
            if (other != r) CHECK(cudaDeviceEnablePeerAccess(other, 0));
        }
        int own;
        CHECK(cudaDeviceGetAttribute(&own, cudaDevAttrMultiProcessorCount, r));
        multiprocessors = r == 0 ? own : std::min(multiprocessors, own);
        CHECK(cudaMalloc(&team.signals[r], sizeof(day51::Signals)));
        CHECK(cudaMemset(team.signals[r], 0, sizeof(day51::Signals)));
        // Small whole numbers: floats add them exactly.
        for (long long i = 0; i < n; ++i)
            values[i] = static_cast<float>((i + r) % 7 - 3);
        float* in;
        CHECK(cudaMalloc(&in, n * sizeof(float)));
        CHECK(cudaMemcpy(in, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
        arrays.in[r] = in;
        CHECK(cudaMalloc(&arrays.out[r], n * sizeof(float)));
        CHECK(
            cudaMemset(arrays.out[r], 0xff, n * sizeof(float)));  // an element that is not written stays NaN
        CHECK(cudaStreamCreate(&streams[r]));
        CHECK(cudaDeviceSynchronize());
    }

    // The first call also loads the kernel, so the second one is timed. Kernels of all GPUs wait
    // for each other: the host must launch all of them before it waits for one.
    std::chrono::steady_clock::time_point start;
    for (int call = 0; call < 2; ++call) {
        start = std::chrono::steady_clock::now();
        for (int r = 0; r < ranks; ++r) {
            CHECK(cudaSetDevice(r));
            team.rank = r;
            day51::launch_two_shot<4>(team, arrays, n, multiprocessors, streams[r]);
            CHECK(cudaGetLastError());
        }
        for (int r = 0; r < ranks; ++r)
            CHECK(cudaStreamSynchronize(streams[r]));
    }
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;

    for (int r = 0; r < ranks; ++r) {
        CHECK(cudaMemcpy(values.data(), arrays.out[r], n * sizeof(float), cudaMemcpyDeviceToHost));
        for (long long i = 0; i < n; ++i) {
            long long sum = 0;
            for (int k = 0; k < ranks; ++k)
                sum += (i + k) % 7 - 3;
            if (values[i] == static_cast<float>(sum)) continue;
            std::printf("GPU %d: out[%lld] is %g; expected %lld\n", r, i, values[i], sum);
            return 1;
        }
    }
    // Each GPU sends at least 2 (ranks - 1) / ranks of an array.
    const double bytes = 2.0 * (ranks - 1) / ranks * static_cast<double>(n) * sizeof(float);
    std::printf("n %lld on %d GPU(s): all sums right, %.3f ms, %.1f GB/s over each link\n", n, ranks,
                time.count(), 1e-6 * bytes / time.count());
}
