// Exercises on accesses: which are coalesced, and which banks do lanes meet in? Run it in an
// inspection, which counts the sectors of each request to global memory, and the wavefronts of each
// request to shared memory. 4th edition 6.3; 5th edition 6.1 and 6.5.
//
//   ./course inspect docs/answers/accesses.cu
#include <cuda_runtime.h>

#include <cstdio>

constexpr int kBlock = 256, kBlocks = 2, kThreads = kBlock * kBlocks;

// Each line has one kind of access to global memory; the names are those of the exercise.
__global__ void patterns(const float* a, const float* b, const float* c, float* d, float* e) {
    __shared__ float a_s[kBlock], bc_s[4 * kBlock];
    const int i = blockIdx.x * kBlock + threadIdx.x;
    a_s[threadIdx.x] = a[i];
    for (int j = 0; j < 4; ++j) {
        const float from_b = b[j * kThreads + i];
        const float from_c = c[i * 4 + j];
        bc_s[j * kBlock + threadIdx.x] = from_b + from_c;
    }
    __syncthreads();
    d[i + 8] = a_s[threadIdx.x];
    e[i * 8] = bc_s[threadIdx.x * 4];
}

// One warp, one store with each stride. Every line of an inspection: wavefronts = lanes that meet
// in the busiest bank.
__global__ void strides(float* out) {
    __shared__ float tile[1024];
    const int lane = threadIdx.x;
    tile[lane * 32] = 1.0f;
    __syncwarp();
    tile[lane * 31] = 2.0f;
    __syncwarp();
    tile[lane * 24] = 3.0f;
    __syncwarp();
    tile[lane * 16] = 4.0f;
    __syncwarp();
    tile[lane * 12] = 5.0f;
    __syncwarp();
    tile[lane * 8] = 6.0f;
    __syncwarp();
    tile[lane * 7] = 7.0f;
    __syncwarp();
    out[lane] = tile[lane * 7];
}

int main() {
    float* all = nullptr;
    cudaMalloc(&all, 24 * kThreads * sizeof(float));
    cudaMemset(all, 0, 24 * kThreads * sizeof(float));
    float *a = all, *b = a + kThreads, *c = b + 4 * kThreads, *d = c + 4 * kThreads, *e = d + 2 * kThreads;
    patterns<<<kBlocks, kBlock>>>(a, b, c, d, e);
    strides<<<1, 32>>>(all);
    const cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s; the counts are those of ./course inspect\n", cudaGetErrorString(error));
    cudaFree(all);
    return error == cudaSuccess ? 0 : 1;
}
