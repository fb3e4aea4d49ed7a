// Asynchronous errors: a kernel fails while it runs. Which call reports that?
//
//   nvcc asynchronous.cu -o asynchronous && ./asynchronous
//   CUDA_ON_CPU_STREAMS=late ./course run day08 --program asynchronous
//
// On a GPU the kernel runs while the host goes on. Without one it runs within the launch, unless
// CUDA_ON_CPU_STREAMS=late keeps it until the host waits.
#include <cuda_runtime.h>

#include <cstdio>

// Runs for about a millisecond, then writes to the null pointer.
__global__ void write_late(float* nowhere) {
    const long long begin = clock64();
    while (clock64() - begin < 2000000) {
    }
    *nowhere = 1;
}

void show(const char* what, cudaError_t status) {
    printf("%-40s %s\n", what, cudaGetErrorName(status));
}

int main() {
    float* data = nullptr;
    show("cudaMalloc at the beginning", cudaMalloc(&data, 4096));
    float host[1024] = {};

    write_late<<<1, 1>>>(nullptr);
    show("cudaGetLastError after the launch", cudaGetLastError());

    // These calls are right. The first one that waits for the kernel returns the kernel's error.
    show("cudaMemcpy", cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    show("cudaDeviceSynchronize", cudaDeviceSynchronize());

    // cudaGetLastError clears what is stored. But the error is sticky: no further work is possible.
    show("cudaGetLastError", cudaGetLastError());
    show("cudaGetLastError: again", cudaGetLastError());
    show("cudaMalloc", cudaMalloc(&data, 4096));
}
