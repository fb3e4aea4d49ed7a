// Day 47 as one program: the scores of causal attention (day 25) for several heads, without the
// products that the mask drops. Checks the result and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 128 1024 64      in this folder, with a GPU
//   ./course run day47 --program                                anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "band_tiles.cuh"
#include "masked_matmul.cuh"

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

// Small whole numbers: their sums of products are exact.
std::vector<float> whole_numbers(std::size_t count, unsigned seed) {
    std::vector<float> made(count);
    std::mt19937 random(seed);
    for (float& x : made)
        x = static_cast<float>(random() % 7) - 3;
    return made;
}

// `count` matrices of rows x cols in device memory, one after the other.
course::Batch<float> on_device(const std::vector<float>& host, std::size_t count, std::size_t rows,
                               std::size_t cols) {
    float* data;
    CHECK(cudaMalloc(&data, host.size() * sizeof(float)));
    CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
    const auto all = course::DeviceSpan<float>::from_device_pointer(data, host.size());
    return {.first = {all, rows, cols}, .count = count, .stride = rows * cols};
}

int main(int argc, char** argv) {
    const std::size_t heads = argc > 1 ? number(argv[1], 256) : 4;
    const std::size_t tokens = argc > 2 ? number(argv[2], 8192) : 500;
    const std::size_t width = argc > 3 ? number(argv[3], 1024) : 64;
    if (heads == 0 || tokens == 0 || width == 0) {
        std::fprintf(stderr, "expected whole numbers: HEADS to 256, TOKENS to 8192, WIDTH to 1024\n");
        return 2;
    }
    const std::vector<float> queries = whole_numbers(heads * tokens * width, 1);
    const std::vector<float> keys = whole_numbers(queries.size(), 2);
    std::vector<float> scores(heads * tokens * tokens, NAN);  // what is not written stays NaN

    const course::Batch<float> q = on_device(queries, heads, tokens, width);
    const course::Batch<float> k = on_device(keys, heads, tokens, width);
    const course::Batch<float> c = on_device(scores, heads, tokens, tokens);
    const course::Operands operands{.a = {.first = q.first, .count = heads, .stride = q.stride},
                                    .b = {.first = k.first, .count = heads, .stride = k.stride},
                                    .op_b = course::Op::kTranspose};
    // Version skip_tiles: tiles of 128 x 128, two blocks on an SM. Q and K are K-major (day 31).
    using T = course::SquareTile;
    using LoaderA = course::ElementLoader<T::BM, T::BK, T::THREADS>;
    using LoaderB = course::ElementLoader<T::BN, T::BK, T::THREADS>;
    const day47::Band causal{INT_MAX, 0};
    const day47::BandTiles<T> tiles(causal, operands);
    constexpr float kScale = 0.125f;
    const auto launch = [&] {
        day47::launch_multiply_kept_tiles<T, 2, LoaderA, LoaderB>(operands, tiles, c, kScale, -INFINITY,
                                                                  nullptr);
    };

    // The first launch also loads the kernel, so the second one is timed.
    launch();
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    launch();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(scores.data(), c.first.data(), scores.size() * sizeof(float), cudaMemcpyDeviceToHost));
    const std::size_t step =
        std::max<std::size_t>(1, heads * tokens / 2000);  // rows of which all is computed
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const std::size_t row = i / tokens, query = row % tokens, key = i % tokens;
        float expected = key > query ? -INFINITY : 0;
        if (key <= query && row % step != 0 && !std::isnan(scores[i])) continue;
        for (std::size_t e = 0; e < width && key <= query; ++e)
            expected += kScale * queries[row * width + e] * keys[(row - query + key) * width + e];
        if (scores[i] == expected) continue;
        std::printf("head %zu, query %zu, key %zu: %g; expected %g\n", row / tokens, query, key, scores[i],
                    expected);
        return 1;
    }
    const double kept = 0.5 * static_cast<double>(heads) * static_cast<double>(tokens * (tokens + 1));
    std::printf("%zu heads, %zu tokens, width %zu: all right, %.3f ms, %.1f GFLOP/s of kept scores\n", heads,
                tokens, width, ms, 2e-6 * kept * static_cast<double>(width) / ms);
}
