// The reference on the device, for products that would take the host minutes. It shares nothing
// with the steps.
#pragma once

#include <span>

#include "common/device/device_view.hpp"
#include "sgemm.hpp"

namespace gemm {

// multiply_on_cpu() with the operands, packed, in device memory. Needs room there for two doubles
// for each element of the product. Throws std::invalid_argument when a length does not match the
// shape.
void multiply_on_device(const Shape& shape, float alpha, course::DeviceSpan<const float> a,
                        course::DeviceSpan<const float> b, float beta, std::span<double> product,
                        std::span<double> magnitude);

}  // namespace gemm
