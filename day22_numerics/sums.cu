// The order of a sum: one after the other, in pairs, or with a correction.         PMPP appendix A
//
//   nvcc sums.cu -o sums && ./sums 262144
//   ./course run day22 --program sums 262144
//
// Floats between 1 and 2, multiples of 2^-23, are added. The exact sum is known: a whole number of
// these multiples. Errors differ from sum to sum, so each way adds eight times N values, and the
// largest error counts.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (false)

constexpr int kThreads = 256;
constexpr int kSums = 8;
constexpr int kMostValues = 1 << 22;

// Block b has the values from b * n on, and their sum. One after the other, by one thread.
__global__ void add_in_order(const float* values, int n, float* sums) {
    values += blockIdx.x * n;
    float all = 0;
    for (int i = 0; i < n; ++i)
        all += values[i];
    sums[blockIdx.x] = all;
}

// In pairs: value i and its partner in the upper half. Half of the values are left, and the one in
// the middle if n is odd. log2(n) such launches add all. The values of sum y start at y * stride.
__global__ void add_pairs(float* values, int stride, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    values += blockIdx.y * stride;
    if (i < n / 2) values[i] += values[n - n / 2 + i];
}

// Compensated (Kahan): what an addition rounds away is computed, and goes into the next one.
__global__ void add_compensated(const float* values, int n, float* sums) {
    values += blockIdx.x * n;
    float all = 0;
    float lost = 0;  // `all` is too large by this
    for (int i = 0; i < n; ++i) {
        const float value = values[i] - lost;
        const float next = all + value;
        lost = (next - all) - value;
        all = next;
    }
    sums[blockIdx.x] = all;
}

// In double, rounded once.
__global__ void add_in_double(const float* values, int n, float* sums) {
    values += blockIdx.x * n;
    double all = 0;
    for (int i = 0; i < n; ++i)
        all += values[i];
    sums[blockIdx.x] = static_cast<float>(all);
}

// The eight sums, by a kernel with a block of one thread for each.
std::vector<float> sums_by(void (*kernel)(const float*, int, float*), const float* values_d, int n) {
    float* sums_d = nullptr;
    std::vector<float> sums(kSums);
    CUDA_CHECK(cudaMalloc(&sums_d, kSums * sizeof(float)));
    kernel<<<kSums, 1>>>(values_d, n, sums_d);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(sums.data(), sums_d, kSums * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(sums_d));
    return sums;
}

// values_d is overwritten.
std::vector<float> sums_in_pairs(float* values_d, int n) {
    for (int left = n; left > 1; left -= left / 2) {
        const dim3 grid((left / 2 + kThreads - 1) / kThreads, kSums);
        add_pairs<<<grid, kThreads>>>(values_d, n, left);
    }
    CUDA_CHECK(cudaGetLastError());
    std::vector<float> sums(kSums);
    for (int i = 0; i < kSums; ++i)
        CUDA_CHECK(cudaMemcpy(&sums[i], values_d + i * n, sizeof(float), cudaMemcpyDeviceToHost));
    return sums;
}

// The largest error of the eight sums, in ulps of the sum.
double largest_error(const std::vector<float>& sums, const std::vector<float>& values, int n) {
    double largest = 0;
    for (int i = 0; i < kSums; ++i) {
        long long exact = 0;  // in units of 2^-23
        for (int j = 0; j < n; ++j)
            exact += static_cast<long long>(values[i * n + j] * 0x1p23f);
        const double expected = static_cast<double>(exact) * 0x1p-23;
        const double ulp = exp2(ilogb(expected) - 23);
        const double error = std::abs(sums[i] - expected) / ulp;
        if (error > largest || std::isnan(error)) largest = error;
    }
    return largest;
}

int main(int argc, char** argv) {
    const char* text = argc > 1 ? argv[1] : "262144";
    char* end = nullptr;
    const long most = strtol(text, &end, 10);
    if (argc > 2 || end == text || *end != '\0' || most < 1 || most > kMostValues) {
        fprintf(stderr, "usage: sums [N]\nN is '%s'; expected a whole number from 1 to %d\n", text,
                kMostValues);
        return 2;
    }
    std::vector<float> values(kSums * most);
    unsigned state = 22;
    for (float& value : values) {
        state = state * 1664525u + 1013904223u;
        value = 1 + static_cast<float>(state >> 9) * 0x1p-23f;
    }
    float* values_d = nullptr;
    CUDA_CHECK(cudaMalloc(&values_d, values.size() * sizeof(float)));
    printf("largest error of %d sums, in ulps of the sum\n%10s %9s %9s %12s %10s\n", kSums, "values",
           "in order", "in pairs", "compensated", "in double");
    for (const long size : {most / 1024, most / 32, most}) {
        if (size == 0) continue;
        const int n = static_cast<int>(size);
        const size_t bytes = kSums * n * sizeof(float);
        CUDA_CHECK(cudaMemcpy(values_d, values.data(), bytes, cudaMemcpyHostToDevice));
        const auto error = [&](const std::vector<float>& sums) { return largest_error(sums, values, n); };
        const double in_order = error(sums_by(add_in_order, values_d, n));
        const double compensated = error(sums_by(add_compensated, values_d, n));
        const double in_double = error(sums_by(add_in_double, values_d, n));
        const double in_pairs = error(sums_in_pairs(values_d, n));  // the last, as it overwrites them
        printf("%10d %9.2f %9.2f %12.2f %10.2f\n", n, in_order, in_pairs, compensated, in_double);
    }
    CUDA_CHECK(cudaFree(values_d));
}
