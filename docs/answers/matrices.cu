// Exercises on matrix products: a thread per row, a thread per column, a matrix times a vector. 3.1
// and 3.2 of both editions. An inspection shows why one of the first two is slower.
//
//   ./course run docs/answers/matrices.cu
//   ./course inspect docs/answers/matrices.cu               sectors of each load
#include <cuda_runtime.h>

#include <cstdio>

constexpr int kSide = 96, kBlock = 32;

// Adjacent lanes have adjacent rows: their elements of m are a row apart.
__global__ void row_per_thread(const float* m, const float* n, float* product) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= kSide) return;
    for (int column = 0; column < kSide; ++column) {
        float sum = 0.0f;
        for (int k = 0; k < kSide; ++k)
            sum += m[row * kSide + k] * n[k * kSide + column];
        product[row * kSide + column] = sum;
    }
}

// Adjacent lanes have adjacent columns: their elements of n are adjacent.
__global__ void column_per_thread(const float* m, const float* n, float* product) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= kSide) return;
    for (int row = 0; row < kSide; ++row) {
        float sum = 0.0f;
        for (int k = 0; k < kSide; ++k)
            sum += m[row * kSide + k] * n[k * kSide + column];
        product[row * kSide + column] = sum;
    }
}

// The first column of n as the vector would be strided, so `vector` is an array of its own.
__global__ void times_vector(const float* m, const float* vector, float* result) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= kSide) return;
    float sum = 0.0f;
    for (int k = 0; k < kSide; ++k)
        sum += m[row * kSide + k] * vector[k];
    result[row] = sum;
}

int main() {
    float* values = nullptr;
    constexpr int kElements = kSide * kSide;
    cudaMallocManaged(&values, (4 * kElements + kSide) * sizeof(float));
    float *m = values, *n = m + kElements, *by_row = n + kElements, *by_column = by_row + kElements;
    float* result = by_column + kElements;
    // Small whole numbers: every sum is exact.
    for (int i = 0; i < kElements; ++i) {
        m[i] = static_cast<float>(i % 7);
        n[i] = static_cast<float>(i % 5);
    }
    constexpr int kBlocks = (kSide + kBlock - 1) / kBlock;
    row_per_thread<<<kBlocks, kBlock>>>(m, n, by_row);
    column_per_thread<<<kBlocks, kBlock>>>(m, n, by_column);
    times_vector<<<kBlocks, kBlock>>>(m, n, result);
    const cudaError_t error = cudaDeviceSynchronize();
    int wrong = 0;
    for (int row = 0; row < kSide; ++row) {
        float of_vector = 0.0f;
        for (int k = 0; k < kSide; ++k)
            of_vector += m[row * kSide + k] * n[k];
        wrong += result[row] != of_vector;
        for (int column = 0; column < kSide; ++column) {
            float sum = 0.0f;
            for (int k = 0; k < kSide; ++k)
                sum += m[row * kSide + k] * n[k * kSide + column];
            wrong += by_row[row * kSide + column] != sum || by_column[row * kSide + column] != sum;
        }
    }
    std::printf("%s; %d threads for %d results; %d wrong\n", cudaGetErrorString(error), kSide, kElements,
                wrong);
    return error == cudaSuccess && wrong == 0 ? 0 : 1;
}
