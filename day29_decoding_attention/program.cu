// Day 29 as one program: the attention of one new token to all tokens before it, in 2 heads of
// dimension 64. Checks the result and prints the bandwidth.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 100000           in this folder, with a GPU
//   ./course run day29 --program                                anywhere
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "decoding_attention.cuh"

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

constexpr int kHeads = 2;
constexpr int kDim = 64;

// A copy of `host` in device memory.
template <class T>
T* on_device(const std::vector<T>& host) {
    T* data;
    CHECK(cudaMalloc(&data, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return data;
}

// The result of a head in double precision.
std::vector<double> expected_row(const __half* q, const __half* k, const __half* v, int tokens) {
    std::vector<double> score(tokens), row(kDim);
    for (int j = 0; j < tokens; ++j)
        for (int d = 0; d < kDim; ++d)
            score[j] += static_cast<double>(float{q[d]}) * float{k[j * kDim + d]} / std::sqrt(kDim);
    double sum = 0;
    for (int j = 0; j < tokens; ++j) {
        const double weight = std::exp(score[j]);  // scores are small here
        sum += weight;
        for (int d = 0; d < kDim; ++d)
            row[d] += weight * float{v[j * kDim + d]};
    }
    for (double& x : row)
        x /= sum;
    return row;
}

int main(int argc, char** argv) {
    constexpr long long kMost = 1'000'000;
    const int tokens = argc > 1 ? static_cast<int>(number(argv[1], kMost)) : 5000;
    if (tokens == 0) {
        std::fprintf(stderr, "TOKENS is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    // V rises from token to token, so that keys that are left out change the result.
    std::vector<__half> q(kHeads * kDim), k(q.size() * tokens), v(k.size()), out(q.size());
    for (std::vector<__half>* matrix : {&q, &k, &v})
        for (__half& x : *matrix)
            x = __half(static_cast<float>(std::rand()) / RAND_MAX * 2 - 1);
    for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = __half(float{v[i]} + static_cast<float>(i / kDim % tokens) / static_cast<float>(tokens));

    const int splits = day29::splits_for(kHeads, tokens, course::multiprocessors() * day29::kRowBlocks);

    __half* const device_q = on_device(q);
    __half* const device_k = on_device(k);
    __half* const device_v = on_device(v);
    __half* const device_out = on_device(std::vector<__half>(q.size(), __half(NAN)));
    int* const lengths = on_device(std::vector<int>{tokens});
    float* const parts = on_device(std::vector<float>(kHeads * splits * day29::kPartSize<kDim>));

    // One sequence; each head of Q has a head of K, and one query. log2(e): kernels compute 2^x.
    const float scale = 1.44269504f / std::sqrt(static_cast<float>(kDim));
    const day29::Task<__half> task{device_q, device_k, device_v, lengths, device_out, 1,
                                   kHeads,   1,        1,        tokens,  scale};
    // The first launch also loads the kernels, so the second one is timed.
    day29::launch_split_keys<__half, kDim>(task, splits, parts, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day29::launch_split_keys<__half, kDim>(task, splits, parts, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(out.data(), device_out, out.size() * sizeof(__half), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int head = 0; head < kHeads; ++head) {
        const std::size_t cache = static_cast<std::size_t>(head) * tokens * kDim;
        const auto expected = expected_row(&q[head * kDim], &k[cache], &v[cache], tokens);
        for (int d = 0; d < kDim; ++d) {
            const double error = std::fabs(float{out[head * kDim + d]} - expected[d]);
            worst = std::isnan(error) ? 1 : std::max(worst, error);
        }
    }
    std::printf("%d tokens, %d blocks for each of %d heads: largest error %.1e, %.3f ms, %.1f GB/s\n", tokens,
                splits, kHeads, worst, ms, 2e-6 * static_cast<double>(k.size()) * sizeof(__half) / ms);
    for (void* memory : std::vector<void*>{device_q, device_k, device_v, device_out, lengths, parts})
        CHECK(cudaFree(memory));
    return worst < 1e-3 ? 0 : 1;
}
