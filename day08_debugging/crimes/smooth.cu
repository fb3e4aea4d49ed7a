// Verdict: ?, line ?
//
// Smooth: each sample becomes the mean of itself and its two neighbours.
//
//   nvcc smooth.cu -o smooth && ./smooth 1000
#include <cuda_runtime.h>

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

// The first and the last sample stay as they are.
__global__ void smooth(float* samples, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 || i >= n - 1) return;
    samples[i] = (samples[i - 1] + samples[i] + samples[i + 1]) / 3;
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 1000;
    const std::size_t bytes = n * sizeof(float);
    std::vector<float> samples(n);
    for (int i = 0; i < n; ++i)
        samples[i] = i % 2 == 0 ? 3 : 0;

    float* samples_d = nullptr;
    CUDA_CHECK(cudaMalloc(&samples_d, bytes));
    CUDA_CHECK(cudaMemcpy(samples_d, samples.data(), bytes, cudaMemcpyHostToDevice));
    smooth<<<(n + 255) / 256, 256>>>(samples_d, n);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(samples.data(), samples_d, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(samples_d));

    int wrong = 0;
    for (int i = 0; i < n; ++i) {
        const bool is_end = i == 0 || i == n - 1, is_even = i % 2 == 0;
        const float expected = is_end ? (is_even ? 3.0F : 0.0F) : (is_even ? 1.0F : 2.0F);
        wrong += samples[i] != expected;
    }
    printf("%d of %d samples are wrong\n", wrong, n);
    return wrong == 0 ? 0 : 1;
}
