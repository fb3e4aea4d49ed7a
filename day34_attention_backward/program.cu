// Day 34 as one program: the gradients of attention in a head of 64 columns, checked, and the
// speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 8000             in this folder, with a GPU
//   ./course run day34 --program                                anywhere
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "attention_backward.cuh"

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

constexpr int kDim = 64;
using Matrix = std::vector<float>;  // row-major, kDim columns

double dot(const Matrix& a, int i, const Matrix& b, int j) {
    return std::inner_product(&a[i * kDim], &a[i * kDim] + kDim, &b[j * kDim], 0.0);
}

// A copy of `host` in device memory.
float* on_device(const Matrix& host) {
    float* data;
    CHECK(cudaMalloc(&data, host.size() * sizeof(float)));
    CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
    return data;
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? static_cast<int>(number(argv[1], 10000)) : 200;
    if (n == 0) {
        std::fprintf(stderr, "TOKENS is '%s'; expected a whole number from 1 to 10000\n", argv[1]);
        return 2;
    }
    Matrix q(n * kDim), k(q.size()), v(q.size()), d_out(q.size()), out(q.size()), lse(n);
    for (Matrix* matrix : {&q, &k, &v, &d_out})
        for (float& x : *matrix)
            x = static_cast<float>(std::rand()) / RAND_MAX * 4 - 2;
    const float scale = 1 / std::sqrt(static_cast<float>(kDim));
    const auto p = [&](int i, int j) { return std::exp(scale * dot(q, i, k, j) - lse[i]); };  // weight
    const auto ds = [&](int i, int j) { return p(i, j) * (dot(d_out, i, v, j) - dot(d_out, i, out, i)); };
    // The forward pass: out = softmax(scale Q K^T) V, and the log-sum-exp of each row.
    for (int i = 0; i < n; ++i) {
        double sum = 0;
        for (int j = 0; j < n; ++j)
            sum += std::exp(scale * dot(q, i, k, j));
        lse[i] = static_cast<float>(std::log(sum));
        for (int j = 0; j < n; ++j) {
            const double weight = p(i, j);
            for (int c = 0; c < kDim; ++c)
                out[i * kDim + c] += static_cast<float>(weight * v[j * kDim + c]);
        }
    }
    const auto view = [&](const Matrix& matrix) {
        return day34::HeadsView<float>::from_device_pointer(on_device(matrix), {1, 1, lse.size(), kDim});
    };
    const Matrix nan(q.size(), NAN);  // an element that is not written stays NaN
    const auto lse_span = course::DeviceSpan<const float>::from_device_pointer(on_device(lse), n);
    const day34::Gradient<float> g{view(q),  view(k),   view(v),   view(out), view(d_out),
                                   lse_span, view(nan), view(nan), view(nan), scale};
    const std::size_t padded = course::ceil_div<std::size_t>(n, day34::kTile) * day34::kTile;
    const day34::RowTerms terms{on_device(Matrix(padded)), on_device(Matrix(padded)), padded};
    const auto launch = [&] {
        day34::launch_row_terms(g, terms, nullptr);
        day34::launch_recompute_queries<kDim>(g, terms, nullptr);
        day34::launch_recompute_keys<kDim>(g, terms, nullptr);
    };
    launch();  // also loads the kernels, so the second one is timed
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
    Matrix got[3] = {nan, nan, nan};
    const float* const from[3] = {g.dq.data(), g.dk.data(), g.dv.data()};
    for (int m = 0; m < 3; ++m)
        CHECK(cudaMemcpy(got[m].data(), from[m], nan.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int i = 0; i < n; i += n / 16 + 1) {
        std::vector<double> row(3 * kDim);  // row i of dQ, dK and dV
        for (int j = 0; j < n; ++j) {
            const double of_query = scale * ds(i, j), of_key = scale * ds(j, i), weight = p(j, i);
            for (int c = 0; c < kDim; ++c) {
                row[c] += of_query * k[j * kDim + c];
                row[kDim + c] += of_key * q[j * kDim + c];
                row[2 * kDim + c] += weight * d_out[j * kDim + c];
            }
        }
        for (int c = 0; c < 3 * kDim; ++c) {
            const double error = std::fabs(got[c / kDim][i * kDim + c % kDim] - row[c]);
            worst = std::fmax(worst, std::isnan(error) ? 1 : error);
        }
    }
    std::printf("%d tokens: largest error %.1e, %.3f ms, %.1f GFLOP/s\n", n, worst, ms,
                1e-5 * n * n * kDim / ms);
    return worst < 1e-4 ? 0 : 1;
}
