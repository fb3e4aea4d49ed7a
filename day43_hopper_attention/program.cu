// Day 43 as one program: attention of several heads in FP16, with a head dimension of 64. Checks
// the result and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu -gencode arch=compute_90a,code=sm_90a && ./a.out 4096 64     Hopper
//   ./course run day43 --program                                                                 anywhere
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/device/tensor_map.hpp"
#include "hopper_attention.cuh"

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

constexpr int D = 64;  // head dimension
enum { Q, K, V, OUT };
using Heads = std::vector<__half>;  // [heads, tokens, D]

// The largest error of row `row` of all heads, computed again in double precision.
double error_of_row(const Heads (&of)[4], std::size_t row, std::size_t tokens) {
    const std::size_t first = row / tokens * tokens;  // of its head
    const auto at = [&](int m, std::size_t i, int c) { return double{__half2float(of[m][i * D + c])}; };
    std::vector<double> weights(tokens);
    for (std::size_t j = 0; j < tokens; ++j)
        for (int c = 0; c < D; ++c)
            weights[j] += at(Q, row, c) * at(K, first + j, c) / 8;  // 8: the square root of D
    const double max = *std::max_element(weights.begin(), weights.end());
    double sum = 0, worst = 0;
    for (double& w : weights)
        sum += w = std::exp(w - max);
    for (int c = 0; c < D; ++c) {
        double expected = 0;
        for (std::size_t j = 0; j < tokens; ++j)
            expected += weights[j] / sum * at(V, first + j, c);
        const double error = std::fabs(at(OUT, row, c) - expected);
        worst = std::isnan(error) ? 1 : std::fmax(worst, error);
    }
    return worst;
}

int main(int argc, char** argv) {
    const std::size_t tokens = argc > 1 ? number(argv[1], 65536) : 500;
    const std::size_t heads = argc > 2 ? number(argv[2], 128) : 2;
    if (tokens == 0 || heads == 0) {
        std::fprintf(stderr, "expected TOKENS from 1 to 65536 and HEADS from 1 to 128, whole numbers\n");
        return 2;
    }
    int major;
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    if (major != 9) {
        std::printf("nothing was computed: this GPU has compute capability %d.x; expected 9.0\n", major);
        return 0;
    }
    const std::size_t head = tokens * D;  // elements of a head
    const std::size_t bytes = heads * head * sizeof(__half);
    Heads host[4];
    __half* device[4];
    for (int i = Q; i <= OUT; ++i) {
        for (std::size_t j = 0; j < heads * head; ++j)
            host[i].push_back(__float2half(i == OUT ? NAN : std::rand() * (4.0f / RAND_MAX) - 2));
        CHECK(cudaMalloc(&device[i], bytes));
        CHECK(cudaMemcpy(device[i], host[i].data(), bytes, cudaMemcpyHostToDevice));
    }
    constexpr int ROWS = day43::kBlockRows<D>;
    const auto map = [&](int m, unsigned box_rows) {
        return course::make_tensor_map<__half>(device[m], tokens, D, D, {heads, 1}, {head, 0}, box_rows);
    };
    const day43::Maps maps = {map(Q, day43::kRows), map(K, day43::kKeys), map(V, day43::kKeys)};
    day43::Problem<__half> problem{};
    problem.out =
        decltype(problem.out)::from_device_pointer(device[OUT], {1, heads, tokens, D}, {0, head, D});
    problem.length_k = problem.diagonal = static_cast<int>(tokens);  // no mask: each row sees all keys
    problem.heads_kv = static_cast<int>(heads);
    problem.scale = 1.44269504f / 8;  // log2(e): the kernel computes powers of two
    problem.tiles = static_cast<int>((tokens + ROWS - 1) / ROWS);
    problem.heads_at_once = 1;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    // The first launch also loads the kernel, so the second one is timed.
    for (int round = 0; round < 2; ++round) {
        CHECK(cudaEventRecord(start));
        day43::launch_ping_pong<__half, D>(maps, problem, problem.tiles * heads, nullptr);
        CHECK(cudaEventRecord(stop));
    }
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(host[OUT].data(), device[OUT], bytes, cudaMemcpyDeviceToHost));
    double worst = 0;
    for (std::size_t i = 0; i < heads * tokens; i += heads * tokens / 64 + 1)
        worst = std::fmax(worst, error_of_row(host, i, tokens));
    std::printf("%zu heads of %zu tokens x %d: largest error %.1e, %.3f ms, %.1f TFLOP/s\n", heads, tokens, D,
                worst, ms, 4e-9 * heads * tokens * tokens * D / ms);
    for (__half* pointer : device)
        CHECK(cudaFree(pointer));
    return worst < 4e-3 ? 0 : 1;
}
