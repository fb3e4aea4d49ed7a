#include <stdexcept>
#include <string>

#include "common/check/check.hpp"
#include "common/check/matmul_device_reference.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"

namespace course {
namespace {

constexpr int kThreads = 256;

void require_length(const char* name, std::size_t length, std::size_t expected) {
    if (length == expected) return;
    throw std::invalid_argument("multiply_on_device: " + std::string(name) + " has " +
                                std::to_string(length) + " elements; expected " + std::to_string(expected));
}

// Products of rows x cols elements, one after the other.
// Idea: a thread for each element, as simple as possible.
// Cost removed: the host's two outer loops.
// Still limits it: two loads for every multiply-add; B comes from the L2 cache again for every row
// of A.
__global__ void multiply_in_double(std::size_t rows, std::size_t cols, std::size_t depth, float alpha,
                                   DeviceSpan<const float> a, DeviceSpan<const float> b, float beta,
                                   DeviceSpan<double> product, DeviceSpan<double> magnitude) {
    const std::size_t element = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (element >= product.size()) return;
    const std::size_t row = element / cols;  // counted over all products
    const std::size_t col = element % cols;
    const std::size_t b_begin = row / rows * depth * cols;

    double sum = beta == 0 ? 0.0 : static_cast<double>(beta) * product[element];
    double size = fabs(sum);
    const std::size_t terms = alpha == 0 ? 0 : depth;
    for (std::size_t k = 0; k < terms; ++k) {
        const double term = static_cast<double>(alpha) * static_cast<double>(a[row * depth + k]) *
                            static_cast<double>(b[b_begin + k * cols + col]);
        sum += term;
        size += fabs(term);
    }
    product[element] = sum;
    magnitude[element] = size;
}

}  // namespace

void multiply_on_device(std::size_t rows, std::size_t cols, std::size_t depth, float alpha,
                        DeviceSpan<const float> a, DeviceSpan<const float> b, float beta,
                        std::span<double> product, std::span<double> magnitude) {
    require_length("a", a.size(), rows * depth);
    require_length("b", b.size(), depth * cols);
    require_length("product", product.size(), rows * cols);
    require_length("magnitude", magnitude.size(), rows * cols);
    if (product.empty()) return;

    DeviceBuffer<double> product_device(product.size());
    DeviceBuffer<double> magnitude_device(magnitude.size());
    if (beta != 0) product_device.copy_from(product);
    multiply_in_double<<<blocks_for(product.size(), kThreads), kThreads>>>(
        rows, cols, depth, alpha, a, b, beta, product_device.span(), magnitude_device.span());
    CUDA_CHECK_LAUNCH();
    product_device.copy_to(product);
    magnitude_device.copy_to(magnitude);
}

void multiply_batch_on_device(std::size_t count, std::size_t rows, std::size_t cols, std::size_t depth,
                              float alpha, DeviceSpan<const float> a, DeviceSpan<const float> b,
                              DeviceSpan<double> product, DeviceSpan<double> magnitude) {
    require_length("a", a.size(), count * rows * depth);
    require_length("b", b.size(), count * depth * cols);
    require_length("product", product.size(), count * rows * cols);
    require_length("magnitude", magnitude.size(), count * rows * cols);
    if (product.empty()) return;
    multiply_in_double<<<blocks_for(product.size(), kThreads), kThreads>>>(rows, cols, depth, alpha, a, b, 0,
                                                                           product, magnitude);
    CUDA_CHECK_LAUNCH();
}

}  // namespace course
