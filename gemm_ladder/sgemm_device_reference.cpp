#include "sgemm_device_reference.hpp"

#include "common/check/matmul_device_reference.hpp"

namespace gemm {

void multiply_on_device(const Shape& shape, float alpha, course::DeviceSpan<const float> a,
                        course::DeviceSpan<const float> b, float beta, std::span<double> product,
                        std::span<double> magnitude) {
    course::multiply_on_device(shape.m, shape.n, shape.k, alpha, a, b, beta, product, magnitude);
}

}  // namespace gemm
