// Checks in a kernel: printf, assert and __trap.
//
//   nvcc device_checks.cu -o device_checks && ./device_checks printf
//   ./course run day08 --program device_checks assert
//
// The kernel computes square roots; element 5 of the input is negative.
#undef NDEBUG  // which removes every assert() from an optimised program
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>
#include <cstring>

enum class Check { kPrintf, kAssert, kTrap };

__global__ void roots(const float* in, float* out, int n, Check check) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (check == Check::kAssert) assert(in[i] >= 0);
    if (in[i] < 0) {
        printf("block %u, thread %u: in[%d] is %g\n", blockIdx.x, threadIdx.x, i, in[i]);
        if (check == Check::kTrap) __trap();
    }
    out[i] = sqrtf(in[i]);
}

int main(int argc, char** argv) {
    const char* const names[] = {"printf", "assert", "trap"};
    int chosen = -1;
    for (int i = 0; i < 3; ++i)
        if (argc == 2 && strcmp(argv[1], names[i]) == 0) chosen = i;
    if (chosen < 0) {
        fprintf(stderr, "usage: device_checks printf|assert|trap\n");
        return 2;
    }

    constexpr int n = 8;
    const float in[n] = {0, 1, 4, 9, 16, -25, 36, 49};
    float *in_d = nullptr, *out_d = nullptr, out[n] = {};
    cudaMalloc(&in_d, sizeof in);
    cudaMalloc(&out_d, sizeof out);
    cudaMemcpy(in_d, in, sizeof in, cudaMemcpyHostToDevice);
    roots<<<2, 4>>>(in_d, out_d, n, static_cast<Check>(chosen));
    // What a kernel prints lies in a buffer until a call waits for the kernel.
    const cudaError_t status = cudaDeviceSynchronize();
    printf("cudaDeviceSynchronize: %s\n", cudaGetErrorString(status));
    if (status != cudaSuccess) return 1;

    cudaMemcpy(out, out_d, sizeof out, cudaMemcpyDeviceToHost);
    for (const float value : out)
        printf("%g ", value);
    printf("\n");
    cudaFree(in_d);
    cudaFree(out_d);
}
