// The reference for matrix multiplication on the device, for products that would take the host
// minutes. It shares no code with any lesson.
#pragma once

#include <cstddef>
#include <span>

#include "common/device/device_view.hpp"

namespace course {

// The same as multiply_on_cpu() of matmul_reference.hpp, with packed operands in device memory.
// Needs device memory for two doubles per element of the product. Throws std::invalid_argument when
// a length does not match the shape.
void multiply_on_device(std::size_t rows, std::size_t cols, std::size_t depth, float alpha,
                        DeviceSpan<const float> a, DeviceSpan<const float> b, float beta,
                        std::span<double> product, std::span<double> magnitude);

// The same for `count` consecutive products, without adding C; the results stay in device memory.
void multiply_batch_on_device(std::size_t count, std::size_t rows, std::size_t cols, std::size_t depth,
                              float alpha, DeviceSpan<const float> a, DeviceSpan<const float> b,
                              DeviceSpan<double> product, DeviceSpan<double> magnitude);

}  // namespace course
