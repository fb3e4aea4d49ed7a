// Day 27 as one program: a layer of 8 experts, of which each of n tokens (day 25) chooses 2. Checks
// some results on the CPU and prints the time.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 10000        in this folder, with a GPU
//   ./course run day27 --program                            anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "mixture_of_experts.cuh"

// Every CUDA call can fail: check each one.
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (false)

constexpr int kHidden = 64, kWidth = 96, kExperts = 8, kChosen = 2;

// Device memory for `count` elements, with those of `host` if there are any. Freed at the end of
// the program.
template <class T>
T* on_device(std::size_t count, const std::vector<T>& host = {}) {
    T* data = nullptr;
    CHECK(cudaMalloc(&data, count * sizeof(T)));
    if (!host.empty()) CHECK(cudaMemcpy(data, host.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    return data;
}

// Element `col` of a token's result, as the definition says.
double expected(const float* logits, const float* x, const std::vector<float>& weights, int col) {
    int order[kExperts];
    for (int e = 0; e < kExperts; ++e)
        order[e] = e;
    std::stable_sort(order, order + kExperts, [&](int a, int b) { return logits[a] > logits[b]; });
    double sum = 0, of_gates = 0;
    for (int j = 0; j < kChosen; ++j) {
        const double gate = std::exp(static_cast<double>(logits[order[j]]) - logits[order[0]]);
        of_gates += gate;
        for (int d = 0; d < kHidden; ++d)
            sum += gate * x[d] * weights[(static_cast<std::size_t>(order[j]) * kHidden + d) * kWidth + col];
    }
    return sum / of_gates;
}

int main(int argc, char** argv) {
    constexpr long long kMost = 131072;
    char* end = nullptr;
    const long long given = argc > 1 ? std::strtoll(argv[1], &end, 10) : 200;
    if ((end != nullptr && *end != '\0') || given < 1 || given > kMost) {
        std::fprintf(stderr, "N is '%s'; expected a whole number from 1 to %lld\n", argv[1], kMost);
        return 2;
    }
    const auto n = static_cast<int>(given);
    const std::size_t tokens = n, pairs = tokens * kChosen;
    std::mt19937 random(27);
    std::normal_distribution<float> normal;
    std::vector<float> logits(tokens * kExperts), x(tokens * kHidden), weights(kExperts * kHidden * kWidth);
    for (std::vector<float>* values : {&logits, &x, &weights})
        std::generate(values->begin(), values->end(), [&] { return normal(random); });

    day27::Task task{};
    task.logits = on_device(logits.size(), logits);
    task.x = on_device(x.size(), x);
    task.weights = on_device(weights.size(), weights);
    task.out = on_device<float>(tokens * kWidth);
    task.tokens = n;
    task.hidden = kHidden;
    task.width = kWidth;
    task.experts = kExperts;
    task.chosen = kChosen;
    task.choice = on_device<int>(pairs);
    task.gate = on_device<float>(pairs);
    task.counts = on_device<int>(kExperts * (pairs / day27::kBlock + 1));
    task.starts = on_device<int>(kExperts + 1);
    task.place = on_device<int>(pairs);
    task.pair_at = on_device<int>(pairs);
    task.result = on_device<float>(pairs * kWidth);
    task.tiles = on_device<int>(kExperts + 1);

    // The first launch also loads the kernels, so the second one is timed.
    day27::launch_tile_list(task, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day27::launch_tile_list(task, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<float> out(tokens * kWidth);
    CHECK(cudaMemcpy(out.data(), task.out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (std::size_t i = 0; i < out.size(); i += out.size() / 997 + 1) {
        const std::size_t token = i / kWidth;
        const double right = expected(&logits[token * kExperts], &x[token * kHidden], weights, i % kWidth);
        wrong += !(std::abs(out[i] - right) <= 1e-4);
    }
    std::printf("%d tokens: %d wrong, %.3f ms\n", n, wrong, ms);
    return wrong != 0;
}
