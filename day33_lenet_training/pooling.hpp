// Pooling and activation, between two convolutional layers: the host API. The shapes are in
// shapes.hpp.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/device_view.hpp"
#include "shapes.hpp"

namespace day33 {

using course::DeviceSpan;

// All functions enqueue on `stream`. They throw std::invalid_argument for a shape that is not as
// above (windows of 1 to 16 elements a side, at most 2^30 elements), and for wrong lengths;
// CudaError when a launch fails.

// y is the largest element of each window, NaN if there is one. `place` is its position, row times
// window plus column; of equal elements the first counts.
void max_pool(const PoolShape& shape, DeviceSpan<const float> x, DeviceSpan<float> y,
              DeviceSpan<std::uint8_t> place, cudaStream_t stream);
void max_pool_gradient(const PoolShape& shape, DeviceSpan<const float> dy,
                       DeviceSpan<const std::uint8_t> place, DeviceSpan<float> dx, cudaStream_t stream);

// y is the sum of each window over window^2, also where a part of it is padding.
void average_pool(const PoolShape& shape, DeviceSpan<const float> x, DeviceSpan<float> y,
                  cudaStream_t stream);
void average_pool_gradient(const PoolShape& shape, DeviceSpan<const float> dy, DeviceSpan<float> dx,
                           cudaStream_t stream);

// y = max(y + bias of its channel, 0), in place. NaN stays NaN.
void bias_relu(const Channels& shape, DeviceSpan<float> y, DeviceSpan<const float> bias, cudaStream_t stream);

// From the gradient dy after the activation and its result y: the gradient before it, 0 where y is
// 0, and that of the bias, always summed in the same order. dz may be dy. `scratch` has n k floats.
void bias_relu_gradient(const Channels& shape, DeviceSpan<const float> y, DeviceSpan<const float> dy,
                        DeviceSpan<float> dz, DeviceSpan<float> dbias, DeviceSpan<float> scratch,
                        cudaStream_t stream);

}  // namespace day33
