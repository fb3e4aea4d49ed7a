#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "expected.hpp"

namespace day45 {
namespace {

constexpr int kThreads = 256;

// Idea: a thread for each element.
// Cost removed: the copies to the host and back.
// Still limits it: memory.
__global__ void fill_elements(course::DeviceSpan<const std::uint8_t> keep, double fill,
                              course::DeviceSpan<double> product, course::DeviceSpan<double> magnitude) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= product.size() || keep[i % keep.size()] != 0) return;
    product[i] = fill;
    magnitude[i] = 0;
}

}  // namespace

void fill_dropped_on_device(course::DeviceSpan<const std::uint8_t> keep, double fill,
                            course::DeviceSpan<double> product, course::DeviceSpan<double> magnitude) {
    if (product.empty()) return;
    fill_elements<<<course::blocks_for(product.size(), kThreads), kThreads>>>(keep, fill, product, magnitude);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace day45
