// The barrier of the loop is in a branch now, and threads end without it.
// exercise: day08/average
// expect: 128 of the block's 256 threads have come to barriers before __syncthreads
// whole file: average.cu
// Verdict: barrier in a branch, line 30
//
// Average: the mean of every 256 samples.
//
//   nvcc average.cu -o average && ./average 1000
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

constexpr int kBlock = 256;

// means: one for each block; the samples of the last block may be fewer.
__global__ void average(const float* samples, float* means, int n) {
    __shared__ float sums[kBlock];
    const int t = threadIdx.x;
    const int i = blockIdx.x * kBlock + t;
    sums[t] = i < n ? samples[i] : 0;
    __syncthreads();
    for (int stride = kBlock / 2; stride > 0; stride /= 2) {
        if (t < stride) {
            sums[t] += sums[t + stride];
            __syncthreads();
        }
    }
    if (t == 0) means[blockIdx.x] = sums[0] / static_cast<float>(min(kBlock, n - i));
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 1000;
    const int blocks = (n + kBlock - 1) / kBlock;
    std::vector<float> samples(n), means(blocks);
    for (int i = 0; i < n; ++i)
        samples[i] = static_cast<float>(i);

    float *samples_d = nullptr, *means_d = nullptr;
    CUDA_CHECK(cudaMalloc(&samples_d, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&means_d, blocks * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(samples_d, samples.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    average<<<blocks, kBlock>>>(samples_d, means_d, n);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(means.data(), means_d, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(samples_d));
    CUDA_CHECK(cudaFree(means_d));
    for (const float mean : means)
        printf("%.1f\n", mean);
}
