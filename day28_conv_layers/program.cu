// Day 28 as one program: a convolutional layer with filters of 3 x 3 and padding 1, as an unrolled
// matrix and a matrix product. Checks the result and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 64 64 56 64       in this folder, with a GPU
//   ./course run day28 --program                                 anywhere
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "conv_layers.cuh"

// Every CUDA call can fail: check each one.
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (false)

// `text` as a whole number from 1 to `most`; 0 if it is not one, such as 1e9.
long long number(const char* text, long long most) {
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    return *end == '\0' && value >= 1 && value <= most ? value : 0;
}

using day28::Shape;
using Tensor = std::vector<float>;

// A copy of `host` in device memory.
float* on_device(const Tensor& host) {
    float* data;
    CHECK(cudaMalloc(&data, host.size() * sizeof(float)));
    CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
    return data;
}

// Output (n, k, p, q), in double precision.
double expected(const Tensor& x, const Tensor& w, const Shape& shape, int n, int k, int p, int q) {
    double sum = 0;
    for (int c = 0; c < shape.c; ++c)
        for (int r = 0; r < shape.r; ++r)
            for (int s = 0; s < shape.s; ++s) {
                const int row = p - shape.padding + r;
                const int col = q - shape.padding + s;
                if (row < 0 || row >= shape.h || col < 0 || col >= shape.w) continue;
                sum += static_cast<double>(x[n * shape.image() + (c * shape.h + row) * shape.w + col]) *
                       w[k * shape.filter() + (c * shape.r + r) * shape.s + s];
            }
    return sum;
}

int main(int argc, char** argv) {
    int sizes[4] = {8, 16, 28, 32};  // images, channels, rows and also columns, filters
    for (int i = 0; i < 4 && i + 1 < argc; ++i)
        sizes[i] = static_cast<int>(number(argv[i + 1], 1024));
    const Shape shape{.n = sizes[0],
                      .c = sizes[1],
                      .h = sizes[2],
                      .w = sizes[2],
                      .k = sizes[3],
                      .r = 3,
                      .s = 3,
                      .padding = 1};
    const double outputs = 1.0 * shape.n * shape.k * shape.h * shape.w;
    const double columns = 9.0 * shape.n * shape.c * shape.h * shape.w;  // elements of the unrolled matrix
    if (outputs == 0 || columns == 0 || outputs > 1 << 30 || columns > 1 << 30) {
        std::fprintf(stderr,
                     "expected IMAGES CHANNELS SIDE FILTERS, whole numbers from 1 to 1024, with at most 2^30 "
                     "outputs and 2^30 elements of the unrolled matrix\n");
        return 2;
    }
    Tensor x(shape.n * shape.image()), w(shape.k * shape.filter());
    for (Tensor* tensor : {&x, &w})
        for (float& value : *tensor)
            value = static_cast<float>(std::rand()) / RAND_MAX * 2 - 1;
    Tensor y(shape.n * shape.k * shape.plane(), NAN);  // an output that is not written stays NaN

    float* const device_x = on_device(x);
    float* const device_w = on_device(w);
    float* const device_y = on_device(y);
    float* unrolled;
    CHECK(cudaMalloc(&unrolled, static_cast<std::size_t>(columns) * sizeof(float)));

    // The first launch also loads the kernels, so the second one is timed.
    day28::launch_conv_unrolled(device_x, device_w, device_y, unrolled, shape, nullptr);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day28::launch_conv_unrolled(device_x, device_w, device_y, unrolled, shape, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    CHECK(cudaMemcpy(y.data(), device_y, y.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0;  // of all outputs of the first and the last image, every 97th filter
    for (int n = 0; n<shape.n; n += shape.n> 1 ? shape.n - 1 : 1)
        for (int k = 0; k<shape.k; k += shape.k> 97 ? 97 : 1)
            for (int i = 0; i < shape.plane(); ++i) {
                const double error = std::fabs(y[(n * shape.k + k) * shape.plane() + i] -
                                               expected(x, w, shape, n, k, i / shape.w, i % shape.w));
                worst = std::isnan(error) ? INFINITY : std::fmax(worst, error);
            }
    std::printf("%d images, %d channels of %d x %d, %d filters: largest error %.1e, %.3f ms, %.1f GFLOP/s\n",
                shape.n, shape.c, shape.h, shape.w, shape.k, worst, ms, 2e-6 * outputs * shape.filter() / ms);
    for (float* const data : {device_x, device_w, device_y, unrolled})
        CHECK(cudaFree(data));
    return worst < 1e-6 * shape.filter() ? 0 : 1;
}
