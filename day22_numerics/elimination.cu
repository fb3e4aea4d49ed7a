// Gaussian elimination: a small system A x = b, without and with pivoting.         PMPP appendix A
//
//   nvcc elimination.cu -o elimination && ./elimination 100
//   ./course run day22 --program elimination 100
//
// All unknowns are 1. A is random, but for a first element of 1e-7.
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
constexpr int kMostUnknowns = 1024;

// Rows of n + 1 floats: A, and b behind it. Step k makes column k of the rows below row k 0, by
// subtracting a multiple of row k. The 0 itself is not stored: no later step reads it, and threads
// of this one still read what is there.
__global__ void eliminate(float* a, int n, int k) {
    const int row = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    const int col = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    const int width = n + 1;
    if (row < n && col < width) {
        const float multiple = a[row * width + k] / a[k * width + k];
        a[row * width + col] -= multiple * a[k * width + col];
    }
}

// The row with the largest |a[row][k]| from row k on; of several, the first. One block.
__global__ void find_pivot(const float* a, int n, int k, int* pivot) {
    __shared__ float largest[kThreads];
    __shared__ int row_of[kThreads];
    const int thread = threadIdx.x;
    largest[thread] = -1;
    row_of[thread] = n;
    for (int row = k + thread; row < n; row += kThreads) {
        const float size = fabsf(a[row * (n + 1) + k]);
        if (size > largest[thread]) {
            largest[thread] = size;
            row_of[thread] = row;
        }
    }
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) {
            const int other = thread + half;
            const bool same = largest[other] == largest[thread] && row_of[other] < row_of[thread];
            if (largest[other] > largest[thread] || same) {
                largest[thread] = largest[other];
                row_of[thread] = row_of[other];
            }
        }
    }
    if (thread == 0) *pivot = row_of[0];
}

__global__ void swap_rows(float* a, int n, int k, const int* pivot) {
    const int col = k + blockIdx.x * blockDim.x + threadIdx.x;
    if (col > n || *pivot >= n) return;  // no row has a number in column k
    const float upper = a[k * (n + 1) + col];
    a[k * (n + 1) + col] = a[*pivot * (n + 1) + col];
    a[*pivot * (n + 1) + col] = upper;
}

// Back substitution: the last unknown first. Each one, once known, moves to the right side of the
// rows above. One block.
__global__ void substitute(float* a, int n, float* x) {
    const int width = n + 1;
    for (int k = n - 1; k >= 0; --k) {
        const float known = a[k * width + n] / a[k * width + k];
        if (threadIdx.x == 0) x[k] = known;
        for (int row = threadIdx.x; row < k; row += blockDim.x)
            a[row * width + n] -= a[row * width + k] * known;
        __syncthreads();
    }
}

// a: n rows of n + 1 floats in the host's memory.
std::vector<float> solve(const std::vector<float>& a, int n, bool with_pivoting) {
    float *a_d = nullptr, *x_d = nullptr;
    int* pivot_d = nullptr;
    CUDA_CHECK(cudaMalloc(&a_d, a.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&x_d, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&pivot_d, sizeof(int)));
    CUDA_CHECK(cudaMemcpy(a_d, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
    const auto blocks = [](int threads, int of) { return static_cast<unsigned>((threads + of - 1) / of); };
    for (int k = 0; k < n - 1; ++k) {
        if (with_pivoting) {
            find_pivot<<<1, kThreads>>>(a_d, n, k, pivot_d);
            swap_rows<<<blocks(n + 1 - k, kThreads), kThreads>>>(a_d, n, k, pivot_d);
        }
        const dim3 grid(blocks(n - k, 16), blocks(n - k - 1, 16));
        eliminate<<<grid, dim3(16, 16)>>>(a_d, n, k);
    }
    substitute<<<1, kThreads>>>(a_d, n, x_d);
    CUDA_CHECK(cudaGetLastError());
    std::vector<float> x(n);
    CUDA_CHECK(cudaMemcpy(x.data(), x_d, n * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(a_d));
    CUDA_CHECK(cudaFree(x_d));
    CUDA_CHECK(cudaFree(pivot_d));
    return x;
}

int main(int argc, char** argv) {
    const char* text = argc > 1 ? argv[1] : "100";
    char* end = nullptr;
    const long n = strtol(text, &end, 10);
    if (argc > 2 || end == text || *end != '\0' || n < 2 || n > kMostUnknowns) {
        fprintf(stderr, "usage: elimination [N]\nN is '%s'; expected a whole number from 2 to %d\n", text,
                kMostUnknowns);
        return 2;
    }
    std::vector<float> a(n * (n + 1));
    unsigned state = 22;
    for (long row = 0; row < n; ++row) {
        double b = 0;  // all unknowns are 1
        for (long col = 0; col < n; ++col) {
            state = state * 1664525u + 1013904223u;
            const float value = static_cast<float>(state >> 8) * 0x1p-23f - 1;
            a[row * (n + 1) + col] = row == 0 && col == 0 ? 1e-7f : value;
            b += a[row * (n + 1) + col];
        }
        a[row * (n + 1) + n] = static_cast<float>(b);
    }
    for (const bool with_pivoting : {false, true}) {
        double error = 0;
        for (const float x : solve(a, static_cast<int>(n), with_pivoting))
            if (std::abs(x - 1.0) > error || std::isnan(x)) error = std::abs(x - 1.0);
        printf("%ld unknowns, %s: largest error %.1e\n", n,
               with_pivoting ? "with pivoting" : "without pivoting", error);
    }
}
