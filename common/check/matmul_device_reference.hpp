// The reference of matrix multiplication on the device, for products that would take the host
// minutes. It shares nothing with any lesson.
#pragma once

#include <cstddef>
#include <span>

#include "common/device/device_view.hpp"

namespace course {

// multiply_on_cpu() of matmul_reference.hpp with the factors, packed, in device memory. Needs room
// there for two doubles for each element of the product. Throws std::invalid_argument when a length
// does not match the shape.
void multiply_on_device(std::size_t rows, std::size_t cols, std::size_t depth, float alpha,
                        DeviceSpan<const float> a, DeviceSpan<const float> b, float beta,
                        std::span<double> product, std::span<double> magnitude);

// `count` of them, each behind the other, without a C to be added; the results stay in device
// memory.
void multiply_batch_on_device(std::size_t count, std::size_t rows, std::size_t cols, std::size_t depth,
                              float alpha, DeviceSpan<const float> a, DeviceSpan<const float> b,
                              DeviceSpan<double> product, DeviceSpan<double> magnitude);

}  // namespace course
