// Hello: the smallest CUDA program. Eight threads print their indices.            PMPP chapter 2
//
//   nvcc hello.cu -o hello && ./hello
//   ./course run day00 --program hello          the same, with or without a GPU
#include <cuda_runtime.h>

#include <cstdio>

// __global__: the host calls this function, and the threads of the GPU execute it. Such a function
// is a kernel.
__global__ void hello() {
    printf("hello from thread %u of block %u\n", threadIdx.x, blockIdx.x);
}

int main() {
    hello<<<2, 4>>>();  // a grid of 2 blocks with 4 threads each

    // The launch only puts the kernel into a queue. The host waits for it and checks for errors.
    cudaError_t error = cudaGetLastError();                     // was the launch accepted?
    if (error == cudaSuccess) error = cudaDeviceSynchronize();  // did the kernel run to its end?
    if (error != cudaSuccess) fprintf(stderr, "hello: %s\n", cudaGetErrorString(error));
    return error == cudaSuccess ? 0 : 1;
}
