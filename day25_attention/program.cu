// Day 25 as one program: self-attention with one head and a causal mask, in three launches. Checks
// the result and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 8192 64          in this folder, with a GPU
//   ./course run day25 --program                                anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "attention.cuh"

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

using day25::DeviceMatrix;
using Matrix = std::vector<float>;  // row-major

// A matrix in device memory, a copy of `host`.
DeviceMatrix<float> on_device(const Matrix& host, std::size_t rows, std::size_t cols) {
    float* data;
    CHECK(cudaMalloc(&data, host.size() * sizeof(float)));
    CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
    return {course::DeviceSpan<float>::from_device_pointer(data, host.size()), rows, cols};
}

// out = softmax(q k^T / sqrt(width)) v, where query i sees the keys 0 to i.
void attention(DeviceMatrix<float> q, DeviceMatrix<float> k, DeviceMatrix<float> v,
               DeviceMatrix<float> scores, DeviceMatrix<float> out) {
    using Tile = day25::SixteenResults;
    const float scale = 1 / std::sqrt(static_cast<float>(q.cols()));
    const day25::MaskedRows causal{q.rows(), q.rows(), true, nullptr};
    day25::launch_multiply_matrices<Tile, true>(q, k, scores, scale, 0, nullptr);
    day25::launch_softmax_long_rows<1>(scores, causal, nullptr);
    day25::launch_multiply_matrices<Tile, false>(scores, v, out, 1, 0, nullptr);
}

// Row i of the result, in double precision.
std::vector<double> expected_row(const Matrix& q, const Matrix& k, const Matrix& v, int i, int width) {
    std::vector<double> score(i + 1), row(width);
    for (int j = 0; j <= i; ++j) {
        for (int d = 0; d < width; ++d)
            score[j] += static_cast<double>(q[i * width + d]) * k[j * width + d] / std::sqrt(width);
    }
    const double max = *std::max_element(score.begin(), score.end());
    double sum = 0;
    for (int j = 0; j <= i; ++j) {
        const double weight = std::exp(score[j] - max);
        sum += weight;
        for (int d = 0; d < width; ++d)
            row[d] += weight * v[j * width + d];
    }
    for (double& x : row)
        x /= sum;
    return row;
}

int main(int argc, char** argv) {
    const int tokens = argc > 1 ? static_cast<int>(number(argv[1], 32768)) : 1000;
    const int width = argc > 2 ? static_cast<int>(number(argv[2], 1024)) : 64;
    if (tokens == 0 || width == 0) {
        std::fprintf(stderr,
                     "expected TOKENS from 1 to 32768 and a head dimension from 1 to 1024, whole numbers\n");
        return 2;
    }
    Matrix q(tokens * width), k(q.size()), v(q.size()), out(q.size());
    for (Matrix* matrix : {&q, &k, &v})
        for (float& x : *matrix)
            x = static_cast<float>(std::rand()) / RAND_MAX * 4 - 2;

    const auto device_q = on_device(q, tokens, width);
    const auto device_k = on_device(k, tokens, width);
    const auto device_v = on_device(v, tokens, width);
    const auto device_out = on_device(out, tokens, width);
    const auto scores = on_device(Matrix(static_cast<std::size_t>(tokens) * tokens), tokens, tokens);

    // The first call also loads the kernels, so the second one is timed.
    attention(device_q, device_k, device_v, scores, device_out);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    attention(device_q, device_k, device_v, scores, device_out);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(out.data(), device_out.data(), out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int i = 0; i < tokens; i += std::max(1, tokens / 256)) {
        const std::vector<double> expected = expected_row(q, k, v, i, width);
        for (int d = 0; d < width; ++d)
            worst = std::fmax(
                worst, std::isnan(out[i * width + d]) ? 1 : std::fabs(out[i * width + d] - expected[d]));
    }
    std::printf("%d tokens x %d: largest error %.1e, %.3f ms, %.1f GFLOP/s\n", tokens, width, worst, ms,
                4e-6 * tokens * tokens * width / ms);
    for (const auto& matrix : {device_q, device_k, device_v, device_out, scores})
        CHECK(cudaFree(matrix.data()));
    return worst < 1e-4 ? 0 : 1;
}
