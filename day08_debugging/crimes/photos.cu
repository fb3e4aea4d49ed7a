// Verdict: ?, line ?
//
// Photos: how bright are they?
//
//   nvcc photos.cu -o photos && ./photos 2
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

constexpr int kPixels = 1000, kBlock = 256;

struct Photo {
    float* pixels = nullptr;  // in device memory

    Photo() { CUDA_CHECK(cudaMalloc(&pixels, kPixels * sizeof(float))); }
    ~Photo() { cudaFree(pixels); }
};

__global__ void expose(float* pixels, float light) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kPixels) pixels[i] = light;
}

void take(Photo photo, float light) {
    expose<<<(kPixels + kBlock - 1) / kBlock, kBlock>>>(photo.pixels, light);
    CUDA_CHECK(cudaGetLastError());
}

float brightness(const Photo& photo) {
    std::vector<float> pixels(kPixels);
    CUDA_CHECK(cudaMemcpy(pixels.data(), photo.pixels, kPixels * sizeof(float), cudaMemcpyDeviceToHost));
    float sum = 0;
    for (const float pixel : pixels)
        sum += pixel;
    return sum / kPixels;
}

int main(int argc, char** argv) {
    const float light = argc > 1 ? static_cast<float>(atof(argv[1])) : 2;
    Photo first;
    take(first, light);
    Photo second;
    take(second, 2 * light);
    printf("the first photo has brightness %g, the second one %g\n", brightness(first), brightness(second));
}
