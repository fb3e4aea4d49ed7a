// Grayscale: a colour image becomes a grey one. One thread per pixel.          PMPP chapter 3
//
//   nvcc grayscale.cu -o grayscale -lpng          libpng: package libpng-dev
//   ./grayscale picture.png gray.png
//   ./course run day00 --program grayscale in.png out.png
#include <cuda_runtime.h>
#include <png.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (false)

using Byte = unsigned char;

// How bright a colour looks: the eye is most sensitive to green. Integers, so that the host
// computes exactly the same. __device__: kernels can call this function. __host__: the host can,
// too.
__host__ __device__ Byte luminance(Byte red, Byte green, Byte blue) {
    return static_cast<Byte>((21 * red + 72 * green + 7 * blue + 50) / 100);
}

// rgb: height x width pixels, row after row, three bytes each. gray: the same, one byte each.
__global__ void to_gray(const Byte* rgb, Byte* gray, int width, int height) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < height && col < width) {
        // Row-major order: `row` rows of `width` pixels come first, then `col` pixels of this row.
        const int i = row * width + col;
        gray[i] = luminance(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
    }
}

void to_gray_on_gpu(const Byte* rgb, Byte* gray, int width, int height) {
    const size_t pixels = static_cast<size_t>(width) * height;
    Byte *rgb_d = nullptr, *gray_d = nullptr;
    CUDA_CHECK(cudaMalloc(&rgb_d, 3 * pixels));
    CUDA_CHECK(cudaMalloc(&gray_d, pixels));
    CUDA_CHECK(cudaMemcpy(rgb_d, rgb, 3 * pixels, cudaMemcpyHostToDevice));

    const dim3 block(16, 16);  // x: columns, y: rows
    const dim3 grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
    to_gray<<<grid, block>>>(rgb_d, gray_d, width, height);
    CUDA_CHECK(cudaGetLastError());

    CUDA_CHECK(cudaMemcpy(gray, gray_d, pixels, cudaMemcpyDeviceToHost));  // waits for the kernel
    CUDA_CHECK(cudaFree(rgb_d));
    CUDA_CHECK(cudaFree(gray_d));
}

int main(int argc, char** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: grayscale IN.png OUT.png\n");
        return 2;
    }

    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    if (!png_image_begin_read_from_file(&image, argv[1])) {
        fprintf(stderr, "grayscale: cannot read '%s': %s\n", argv[1], image.message);
        return 2;
    }
    const int width = static_cast<int>(image.width), height = static_cast<int>(image.height);
    if (width > INT_MAX / 3 / height) {
        fprintf(stderr, "grayscale: '%s' has %d x %d pixels; expected at most %d\n", argv[1], width, height,
                INT_MAX / 3);
        png_image_free(&image);
        return 2;
    }
    image.format = PNG_FORMAT_RGB;
    std::vector<Byte> rgb(PNG_IMAGE_SIZE(image));
    if (!png_image_finish_read(&image, nullptr, rgb.data(), 0, nullptr)) {
        fprintf(stderr, "grayscale: cannot read '%s': %s\n", argv[1], image.message);
        return 2;
    }

    std::vector<Byte> gray(static_cast<size_t>(width) * height);
    to_gray_on_gpu(rgb.data(), gray.data(), width, height);

    for (size_t i = 0; i < gray.size(); ++i) {
        const Byte expected = luminance(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
        if (gray[i] != expected) {
            fprintf(stderr, "row %zu, column %zu is %d; expected %d\n", i / width, i % width, gray[i],
                    expected);
            return 1;
        }
    }
    image.format = PNG_FORMAT_GRAY;
    if (!png_image_write_to_file(&image, argv[2], 0, gray.data(), 0, nullptr)) {
        fprintf(stderr, "grayscale: cannot write '%s': %s\n", argv[2], image.message);
        return 1;
    }
    printf("%d x %d pixels are right; written: %s\n", width, height, argv[2]);
}
