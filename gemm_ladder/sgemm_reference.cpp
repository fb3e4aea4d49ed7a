#include "common/check/matmul_reference.hpp"
#include "sgemm.hpp"

namespace gemm {

void multiply_on_cpu(const Shape& shape, float alpha, std::span<const float> a, std::span<const float> b,
                     float beta, std::span<double> product, std::span<double> magnitude) {
    course::multiply_on_cpu(shape.m, shape.n, shape.k, alpha, a, b, beta, product, magnitude);
}

}  // namespace gemm
