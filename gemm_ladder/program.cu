// The ladder as one program: multiplies two matrices of floats with step 7, checks the product and
// prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 4096 4096 4096     in this folder, with a GPU
//   ./course run gemm_ladder --program                            anywhere
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "steps/07_double_buffering.cu"

// The last lines of a step's file hand it to the ladder's host code: checks, a kernel for rows that
// are not aligned, a table of resources. main() below needs none of them.
namespace gemm {
Sgemm checked(const Sgemm& gemm) {
    return gemm;
}
void launch_unaligned(const Sgemm&, cudaStream_t) {}
}  // namespace gemm
namespace course {
MultiprocessorLimits multiprocessor_limits() {
    return {};
}
Occupancy occupancy(const BlockNeeds&, const MultiprocessorLimits&) {
    return {};
}
}  // namespace course

using course::DeviceMatrix;

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

// A rows x cols matrix on the device. Its rows are padded to a multiple of 16 bytes, because step 7
// loads float4: its leading dimension is larger than `cols` where cols % 4 != 0.
DeviceMatrix<float> device_matrix(std::size_t rows, std::size_t cols) {
    const std::size_t leading = (cols + 3) / 4 * 4;
    float* data;
    CHECK(cudaMalloc(&data, rows * leading * sizeof(float)));
    // NaN: an element that is not written stays NaN, and padding that is used spoils the product.
    CHECK(cudaMemset(data, 0xff, rows * leading * sizeof(float)));
    return {course::DeviceSpan<float>::from_device_pointer(data, rows * leading), rows, cols, leading};
}

// Copies the rows of a packed matrix on the host.
void copy_to(const DeviceMatrix<float>& matrix, const std::vector<float>& host) {
    const std::size_t pitch = matrix.leading_dimension() * sizeof(float), row = matrix.cols() * sizeof(float);
    CHECK(cudaMemcpy2D(matrix.data(), pitch, host.data(), row, row, matrix.rows(), cudaMemcpyHostToDevice));
}

int main(int argc, char** argv) {
    constexpr long long kMost = 65535;
    const bool given = argc == 4;
    const long long rows = given ? number(argv[1], kMost) : 500;
    const long long cols = given ? number(argv[2], kMost) : 402;
    const long long depth = given ? number(argv[3], kMost) : 510;
    if ((argc != 1 && !given) || rows == 0 || cols == 0 || depth == 0) {
        std::fprintf(stderr, "expected ROWS COLS DEPTH, three whole numbers from 1 to %lld\n", kMost);
        return 2;
    }
    // Small whole numbers: floats hold their sums exactly, below 2^24.
    std::vector<float> a(rows * depth), b(depth * cols), c(rows * cols);
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = static_cast<float>(i % 7) - 3;
    for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = static_cast<float>(i % 5) - 2;

    const DeviceMatrix<float> device_a = device_matrix(rows, depth);
    const DeviceMatrix<float> device_b = device_matrix(depth, cols);
    const DeviceMatrix<float> device_c = device_matrix(rows, cols);
    copy_to(device_a, a);
    copy_to(device_b, b);
    const gemm::Sgemm problem{.a = device_a, .b = device_b, .c = device_c, .alpha = 1, .beta = 0};

    const unsigned tiles = gemm::tiles_of<gemm::BM, gemm::BN>(problem);  // a block for each, 128 x 128
    // The first launch also loads the kernel, so the second one is timed.
    gemm::sgemm_double_buffering<<<tiles, gemm::THREADS>>>(problem);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    gemm::sgemm_double_buffering<<<tiles, gemm::THREADS>>>(problem);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    // About a thousand elements of C, spread over it, are computed again on the CPU.
    const std::size_t pitch = device_c.leading_dimension() * sizeof(float), row = cols * sizeof(float);
    CHECK(cudaMemcpy2D(c.data(), row, device_c.data(), pitch, row, rows, cudaMemcpyDeviceToHost));
    std::size_t wrong = 0, checked = 0;
    for (std::size_t i = 0; i < c.size(); i += c.size() / 1000 + 1, ++checked) {
        float expected = 0;
        for (long long k = 0; k < depth; ++k)
            expected += a[i / cols * depth + k] * b[k * cols + i % cols];
        if (c[i] != expected) ++wrong;
    }
    std::printf("%lld x %lld x %lld: %zu of %zu elements wrong, %.3f ms, %.2f TFLOP/s\n", rows, cols, depth,
                wrong, checked, ms, 2e-9 * rows * cols * depth / ms);
    for (const auto& matrix : {device_a, device_b, device_c})
        CHECK(cudaFree(matrix.data()));
    return wrong == 0 ? 0 : 1;
}
