// Day 26 as one program: attention without its matrix of scores, in one launch. Checks the result
// and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 8192 128         in this folder, with a GPU
//   ./course run day26 --program                                anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "fused_attention.cuh"

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

// Row i of the result in double precision. All are row-major, with rows of `dim` elements; row i
// sees the keys 0 to i.
std::vector<double> expected_row(const std::vector<float>& q, const std::vector<float>& k,
                                 const std::vector<float>& v, std::size_t i, std::size_t dim) {
    std::vector<double> score(i + 1), row(dim);
    for (std::size_t j = 0; j <= i; ++j) {
        for (std::size_t c = 0; c < dim; ++c)
            score[j] += static_cast<double>(q[i * dim + c]) * k[j * dim + c];
        score[j] /= std::sqrt(static_cast<double>(dim));
    }
    const double max = *std::max_element(score.begin(), score.end());
    double sum = 0;
    for (std::size_t j = 0; j <= i; ++j) {
        const double weight = std::exp(score[j] - max);
        sum += weight;
        for (std::size_t c = 0; c < dim; ++c)
            row[c] += weight * v[j * dim + c];
    }
    for (double& x : row)
        x /= sum;
    return row;
}

int main(int argc, char** argv) {
    constexpr long long kMostTokens = 1 << 20;
    const std::size_t tokens = argc > 1 ? number(argv[1], kMostTokens) : 500;
    const std::size_t dim = argc > 2 ? number(argv[2], day26::kMaxDim) : 64;
    if (tokens == 0 || dim == 0) {
        std::fprintf(stderr,
                     "expected TOKENS from 1 to %lld and a head dimension from 1 to %zu, whole numbers\n",
                     kMostTokens, day26::kMaxDim);
        return 2;
    }
    std::vector<float> q(tokens * dim), k(q.size()), v(q.size()), out(q.size(), NAN);
    for (std::vector<float>* matrix : {&q, &k, &v})
        for (float& x : *matrix)
            x = static_cast<float>(std::rand()) / RAND_MAX * 4 - 2;

    const std::size_t bytes = q.size() * sizeof(float);
    const std::vector<float>* const host[] = {&q, &k, &v, &out};
    float* device[4];
    for (int i = 0; i < 4; ++i) {
        CHECK(cudaMalloc(&device[i], bytes));
        CHECK(cudaMemcpy(device[i], host[i]->data(), bytes, cudaMemcpyHostToDevice));
    }
    // One head of one sequence. There is no memory for scores.
    const day26::Extents extents{1, 1, tokens, dim};
    using Input = day26::HeadsView<const float>;
    const day26::Attention<float> attention{
        .q = Input::from_device_pointer(device[0], extents),
        .k = Input::from_device_pointer(device[1], extents),
        .v = Input::from_device_pointer(device[2], extents),
        .out = day26::HeadsView<float>::from_device_pointer(device[3], extents),
        .scale = 1 / std::sqrt(static_cast<float>(dim)),
        .causal = true};

    // The first launch also loads the kernel, so the second one is timed.
    day26::launch_register_tiles(attention, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day26::launch_register_tiles(attention, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    CHECK(cudaMemcpy(out.data(), device[3], bytes, cudaMemcpyDeviceToHost));

    double worst = 0;
    for (std::size_t i = 0; i < tokens; i += std::max<std::size_t>(1, tokens / 64)) {
        const std::vector<double> expected = expected_row(q, k, v, i, dim);
        for (std::size_t c = 0; c < dim; ++c) {
            const double error = std::fabs(out[i * dim + c] - expected[c]);
            worst = std::fmax(worst, std::isnan(error) ? INFINITY : error);
        }
    }
    // Two products of `dim` multiply-adds for each of the tokens (tokens + 1) / 2 visible scores.
    const double flops =
        2.0 * static_cast<double>(tokens) * static_cast<double>(tokens + 1) * static_cast<double>(dim);
    std::printf("%zu tokens x %zu: largest error %.1e, %.3f ms, %.1f GFLOP/s\n", tokens, dim, worst, ms,
                1e-6 * flops / ms);
    for (float* const memory : device)
        CHECK(cudaFree(memory));
    return worst < 1e-4 ? 0 : 1;
}
