#include "common/check/check.hpp"
#include "common/check/expected_products.hpp"
#include "common/device/grid.hpp"

namespace course {
namespace {

constexpr int kThreads = 256;

// Idea: a thread for each element.
// Cost removed: the copies to the host and back.
// Still limits it: memory.
__global__ void fill_elements(DeviceSpan<const std::uint8_t> keep, double fill, DeviceSpan<double> product,
                              DeviceSpan<double> magnitude) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= product.size() || keep[i % keep.size()] != 0) return;
    product[i] = fill;
    magnitude[i] = 0;
}

}  // namespace

void fill_dropped_on_device(DeviceSpan<const std::uint8_t> keep, double fill, DeviceSpan<double> product,
                            DeviceSpan<double> magnitude) {
    if (product.empty()) return;
    fill_elements<<<blocks_for(product.size(), kThreads), kThreads>>>(keep, fill, product, magnitude);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace course
