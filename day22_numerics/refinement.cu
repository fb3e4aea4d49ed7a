// Iterative refinement: factors in float, residuals in double.                     PMPP appendix A
//
//   nvcc refinement.cu -o refinement && ./refinement 100
//   ./course run day22 --program refinement 100
//
// A has 2 on the diagonal and -1 beside it. Elimination needs no pivoting for it, and its condition
// grows with n^2: about 4,100 for n = 100.
#include <cuda_runtime.h>

#include <algorithm>
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
constexpr int kMostUnknowns = 1024;
constexpr int kSteps = 5;

// As in elimination.cu, but without b. Column k below row k stays as this step reads it: divided by
// a[k][k], it holds the multiples, which a right side needs later. This is an LU factorisation.
__global__ void eliminate(float* a, int n, int k) {
    const int row = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    const int col = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && col < n) a[row * n + col] -= a[row * n + k] / a[k * n + k] * a[k * n + col];
}

// Solves L U d = r. r is overwritten with d. One block.
__global__ void solve_with_factors(const float* lu, int n, float* r) {
    for (int k = 0; k < n; ++k) {
        for (int row = k + 1 + threadIdx.x; row < n; row += blockDim.x)
            r[row] -= lu[row * n + k] / lu[k * n + k] * r[k];
        __syncthreads();
    }
    for (int k = n - 1; k >= 0; --k) {
        const float known = r[k] / lu[k * n + k];
        for (int row = threadIdx.x; row < k; row += blockDim.x)
            r[row] -= lu[row * n + k] * known;
        __syncthreads();  // all have read r[k]
        if (threadIdx.x == 0) r[k] = known;
    }
}

// r = b - A x, computed in T: the difference of nearly equal numbers.
template <class T>
__global__ void residual(const float* a, const double* b, const double* x, int n, float* r) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    T sum = static_cast<T>(b[row]);
    for (int col = 0; col < n; ++col)
        sum -= static_cast<T>(a[row * n + col]) * static_cast<T>(x[col]);
    r[row] = static_cast<float>(sum);
}

__global__ void correct(double* x, const float* d, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += d[i];
}

template <class T>
T* to_device(const std::vector<T>& host) {
    T* device = nullptr;
    CUDA_CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
    CUDA_CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

int main(int argc, char** argv) {
    const char* text = argc > 1 ? argv[1] : "100";
    char* end = nullptr;
    const long most = strtol(text, &end, 10);
    if (argc > 2 || end == text || *end != '\0' || most < 1 || most > kMostUnknowns) {
        fprintf(stderr, "usage: refinement [N]\nN is '%s'; expected a whole number from 1 to %d\n", text,
                kMostUnknowns);
        return 2;
    }
    const int n = static_cast<int>(most);
    std::vector<float> a(static_cast<size_t>(n) * n, 0.0f);
    std::vector<double> right(n), b(n);
    for (int i = 0; i < n; ++i) {
        right[i] = 1 + 0.001 * (i * 37 % 1000);
        for (int j = std::max(0, i - 1); j <= std::min(n - 1, i + 1); ++j)
            a[i * n + j] = i == j ? 2.0f : -1.0f;
    }
    for (int i = 0; i < n; ++i)
        b[i] = 2 * right[i] - (i > 0 ? right[i - 1] : 0) - (i < n - 1 ? right[i + 1] : 0);

    float* const a_d = to_device(a);
    float* const lu_d = to_device(a);
    double* const b_d = to_device(b);
    float* const r_d = to_device(std::vector<float>(n));
    for (int k = 0; k < n - 1; ++k) {
        const unsigned side = (n - k - 1 + 15) / 16;
        eliminate<<<dim3(side, side), dim3(16, 16)>>>(lu_d, n, k);
    }
    CUDA_CHECK(cudaGetLastError());

    std::vector<double> errors[2];
    for (const bool in_double : {false, true}) {
        double* const x_d = to_device(std::vector<double>(n, 0.0));
        for (int step = 0; step < kSteps; ++step) {
            const int blocks = (n + kThreads - 1) / kThreads;
            const auto kernel = in_double ? residual<double> : residual<float>;
            kernel<<<blocks, kThreads>>>(a_d, b_d, x_d, n, r_d);
            solve_with_factors<<<1, kThreads>>>(lu_d, n, r_d);
            correct<<<blocks, kThreads>>>(x_d, r_d, n);
            CUDA_CHECK(cudaGetLastError());
            std::vector<double> x(n);
            CUDA_CHECK(cudaMemcpy(x.data(), x_d, n * sizeof(double), cudaMemcpyDeviceToHost));
            double error = 0;
            for (int i = 0; i < n; ++i)
                if (std::abs(x[i] - right[i]) > error || std::isnan(x[i])) error = std::abs(x[i] - right[i]);
            errors[in_double].push_back(error);
        }
        CUDA_CHECK(cudaFree(x_d));
    }
    printf("%d unknowns, largest error; residuals in  float   double\n", n);
    for (int step = 0; step < kSteps; ++step)
        printf("%s %d %34.1e  %.1e\n", step == 0 ? "solution  " : "correction", step, errors[0][step],
               errors[1][step]);
    CUDA_CHECK(cudaFree(a_d));
    CUDA_CHECK(cudaFree(lu_d));
    CUDA_CHECK(cudaFree(b_d));
    CUDA_CHECK(cudaFree(r_d));
}
