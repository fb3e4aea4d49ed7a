// Error codes: which call reports an error, and for how long?
//
//   nvcc error_codes.cu -o error_codes && ./error_codes
//   ./course run day08 --program error_codes
//
// Two errors that leave the GPU intact: a call and a launch that are refused.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void fill(float* out, float value) {
    out[threadIdx.x] = value;
}

void show(const char* what, cudaError_t status) {
    printf("%-40s %s: %s\n", what, cudaGetErrorName(status), cudaGetErrorString(status));
}

int main() {
    // 1 << 60 bytes are more than any GPU has. The call returns the error, and CUDA also stores it.
    float* too_large = nullptr;
    show("cudaMalloc of 2^60 bytes", cudaMalloc(&too_large, std::size_t{1} << 60));
    show("cudaPeekAtLastError: read, kept", cudaPeekAtLastError());
    show("cudaGetLastError: read, cleared", cudaGetLastError());
    show("cudaGetLastError: again", cudaGetLastError());

    float* out = nullptr;
    show("cudaMalloc of 4096 bytes", cudaMalloc(&out, 4096));

    // A launch returns nothing. 2048 threads are too many for a block, so no kernel runs.
    fill<<<1, 2048>>>(out, 1);
    show("cudaDeviceSynchronize after the launch", cudaDeviceSynchronize());
    show("cudaGetLastError after the launch", cudaGetLastError());

    // Neither error was sticky: the next launch works.
    fill<<<1, 1024>>>(out, 1);
    show("the launch with 1024 threads", cudaGetLastError());
    show("cudaDeviceSynchronize", cudaDeviceSynchronize());
    show("cudaFree", cudaFree(out));
}
