// Vector addition, c = a + b: a whole CUDA program.                               PMPP chapter 2
//
//   nvcc vector_add.cu -o vector_add && ./vector_add 1000003
//   ./course run day00 --program vector_add 1000003
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

// Most CUDA functions return an error code. This ends the program at the first call that fails.
#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (false)

constexpr int kThreadsPerBlock = 256;
constexpr int kMostElements = 1 << 28;  // three arrays of 1 GB on the host and on the device

// One thread adds one element. The grid consists of whole blocks, so threads beyond the end have
// nothing to do.
__global__ void add(const float* a, const float* b, float* c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

// The host side. a, b and c are arrays of n elements in the host's memory. Returns the kernel's
// time in milliseconds.
float add_on_gpu(const float* a, const float* b, float* c, int n) {
    const size_t bytes = n * sizeof(float);

    // 1. Allocate device memory. The suffix _d marks a pointer that only kernels may dereference.
    float *a_d = nullptr, *b_d = nullptr, *c_d = nullptr;
    CUDA_CHECK(cudaMalloc(&a_d, bytes));
    CUDA_CHECK(cudaMalloc(&b_d, bytes));
    CUDA_CHECK(cudaMalloc(&c_d, bytes));

    // 2. Copy the input to the device.
    CUDA_CHECK(cudaMemcpy(a_d, a, bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(b_d, b, bytes, cudaMemcpyHostToDevice));

    // 3. Launch enough blocks for n threads, between two events: marks in the GPU's queue that note
    // the time.
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    const int blocks = (n + kThreadsPerBlock - 1) / kThreadsPerBlock;
    CUDA_CHECK(cudaEventRecord(start));
    add<<<blocks, kThreadsPerBlock>>>(a_d, b_d, c_d, n);
    CUDA_CHECK(cudaGetLastError());  // a launch returns no error code, so query it
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));  // the launch did not wait for the kernel; this does
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));

    // 4. Copy the result back to the host.
    CUDA_CHECK(cudaMemcpy(c, c_d, bytes, cudaMemcpyDeviceToHost));

    // 5. Free what was allocated.
    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    CUDA_CHECK(cudaFree(a_d));
    CUDA_CHECK(cudaFree(b_d));
    CUDA_CHECK(cudaFree(c_d));
    return milliseconds;
}

int main(int argc, char** argv) {
    const char* text = argc > 1 ? argv[1] : "1000000";
    char* end = nullptr;
    const long n = strtol(text, &end, 10);
    if (argc > 2 || end == text || *end != '\0' || n < 1 || n > kMostElements) {
        fprintf(stderr, "usage: vector_add [N]\nN is '%s'; expected a whole number from 1 to %d\n", text,
                kMostElements);
        return 2;
    }

    std::vector<float> a(n), b(n), c(n);
    for (long i = 0; i < n; ++i) {
        a[i] = 0.5f * static_cast<float>(i % 1000);
        b[i] = 3.0f - static_cast<float>(i % 7);
    }
    const float milliseconds = add_on_gpu(a.data(), b.data(), c.data(), static_cast<int>(n));

    double sum = 0;
    for (long i = 0; i < n; ++i) {
        if (c[i] != a[i] + b[i]) {
            fprintf(stderr, "c[%ld] is %g; expected %g\n", i, c[i], a[i] + b[i]);
            return 1;
        }
        sum += c[i];
    }
    printf("%ld elements are right, their sum is %.1f; the kernel took %.3f ms\n", n, sum, milliseconds);
}
