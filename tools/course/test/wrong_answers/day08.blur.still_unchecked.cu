// The block is small enough now, but the next launch that is refused stays unnoticed.
// exercise: day08/blur
// expect: a launch was refused, and the program did not report it
// whole file: blur.cu
// Verdict: refused launch, line 50
//
// Blur: each pixel becomes the mean of its surroundings.
//
//   nvcc blur.cu -o blur && ./blur 3
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

constexpr int kWidth = 96, kHeight = 64;

__global__ void blur(const float* in, float* out, int radius) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= kWidth || row >= kHeight) return;
    float sum = 0;
    int count = 0;
    for (int y = max(row - radius, 0); y <= min(row + radius, kHeight - 1); ++y) {
        for (int x = max(col - radius, 0); x <= min(col + radius, kWidth - 1); ++x) {
            sum += in[y * kWidth + x];
            ++count;
        }
    }
    out[row * kWidth + col] = sum / static_cast<float>(count);
}

int main(int argc, char** argv) {
    const int radius = argc > 1 ? atoi(argv[1]) : 3;
    std::vector<float> image(kWidth * kHeight);
    const std::size_t bytes = image.size() * sizeof(float);
    for (std::size_t i = 0; i < image.size(); ++i)
        image[i] = static_cast<float>(i * i % 256);

    float *in_d = nullptr, *out_d = nullptr;
    CUDA_CHECK(cudaMalloc(&in_d, bytes));
    CUDA_CHECK(cudaMalloc(&out_d, bytes));
    CUDA_CHECK(cudaMemcpy(in_d, image.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(out_d, image.data(), bytes, cudaMemcpyHostToDevice));
    const dim3 block(32, 8);
    const dim3 grid((kWidth + block.x - 1) / block.x, (kHeight + block.y - 1) / block.y);
    blur<<<grid, block>>>(in_d, out_d, radius);
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaMemcpy(image.data(), out_d, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(in_d));
    CUDA_CHECK(cudaFree(out_d));

    double sum = 0;
    for (const float pixel : image)
        sum += pixel;
    printf("radius %d: the first pixel is %.2f, the last one %.2f, their mean %.2f\n", radius, image.front(),
           image.back(), sum / static_cast<double>(image.size()));
}
