// Kernels as they were written for GPUs before Volta, whose warps ran each statement together.
#include <cstdio>

template <int kBlock>
__device__ void reduce_last_warp(volatile int* s, int t) {
    // clang-format off
    if (kBlock >= 64) s[t] += s[t + 32];
    if (kBlock >= 32) s[t] += s[t + 16];
    s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
    // clang-format on
}
__global__ void sum(int* out) {
    __shared__ int s[96];
    const int t = static_cast<int>(threadIdx.x);
    s[t] = t + 1;
    if (t < 32) s[64 + t] = 0;
    __syncthreads();
    if (t < 32) reduce_last_warp<64>(s, t);
    if (t == 0) *out = s[0];
}
__global__ void scan(int* out) {
    volatile __shared__ int s[64];
    const int i = static_cast<int>(threadIdx.x) + 32;
    s[i - 32] = 0;
    s[i] = i - 32;
    for (int d = 1; d < 32; d *= 2)
        s[i] += s[i - d];
    if (i == 63) *out = s[i];
}
__global__ void add_left(int* out) {
    __shared__ int s[32];
    const int t = static_cast<int>(threadIdx.x);
    s[t] = t;
    int left = t > 0 ? s[t - 1] : 0;
    s[t] = left + 1;
    if (t == 31) *out = s[t];
}
int main() {
    int* out = nullptr;
    int result[3] = {};
    cudaMalloc(&out, sizeof result);
    sum<<<1, 64>>>(out);
    scan<<<1, 32>>>(out + 1);
    add_left<<<1, 32>>>(out + 2);
    cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost);
    printf("%d %d %d\n", result[0], result[1], result[2]);
}
