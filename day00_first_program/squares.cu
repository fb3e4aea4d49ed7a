// Squares: which check finds which mistake?                                     PMPP chapter 2
//
//   nvcc squares.cu -o squares && ./squares 256 && ./squares 2048
//   ./course run day00 --program squares 2048
//
// The threads per block come from the command line. No GPU takes 2048: the launch is refused.
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

__global__ void square(float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = static_cast<float>(i) * static_cast<float>(i);
}

// out: n elements in the host's memory.
void squares_on_gpu(float* out, int n, int threads_per_block) {
    float* out_d = nullptr;
    CUDA_CHECK(cudaMalloc(&out_d, n * sizeof(float)));

    const int blocks = (n + threads_per_block - 1) / threads_per_block;
    square<<<blocks, threads_per_block>>>(out_d, n);
    // Refused at once? Too many threads, too much shared memory (day 3), no block at all.
    CUDA_CHECK(cudaGetLastError());
    // Failed while it ran? An address out of range, for example.
    CUDA_CHECK(cudaDeviceSynchronize());

    CUDA_CHECK(cudaMemcpy(out, out_d, n * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(out_d));
}

int main(int argc, char** argv) {
    const char* text = argc > 1 ? argv[1] : "256";
    char* end = nullptr;
    const long threads_per_block = strtol(text, &end, 10);
    if (argc > 2 || end == text || *end != '\0' || threads_per_block < 1 || threads_per_block > 1000000) {
        fprintf(stderr,
                "usage: squares [THREADS_PER_BLOCK]\nTHREADS_PER_BLOCK is '%s'; expected a whole number from "
                "1 to 1000000\n",
                text);
        return 2;
    }

    const int n = 1000;
    std::vector<float> out(n);
    squares_on_gpu(out.data(), n, static_cast<int>(threads_per_block));
    double sum = 0;
    for (const float value : out)
        sum += value;
    printf("the sum of the squares below %d is %.0f\n", n, sum);
}
