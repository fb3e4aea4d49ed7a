#include "common/bench/half_matmul.hpp"

#include <algorithm>

#include "common/check/matmul_reference.hpp"

namespace course::half_matmul {

template <class T>
std::vector<float> as_floats(std::span<const T> values) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](T value) { return static_cast<float>(value); });
    return floats;
}

template <class T>
void multiply_on_cpu(const Shape& shape, float alpha, std::span<const T> a, std::span<const T> b, float beta,
                     std::span<double> product, std::span<double> magnitude) {
    course::multiply_on_cpu(shape.m, shape.n, shape.k, alpha, as_floats(a), as_floats(b), beta, product,
                            magnitude);
}

template std::vector<float> as_floats(std::span<const __half>);
template std::vector<float> as_floats(std::span<const __nv_bfloat16>);
template void multiply_on_cpu(const Shape&, float, std::span<const __half>, std::span<const __half>, float,
                              std::span<double>, std::span<double>);
template void multiply_on_cpu(const Shape&, float, std::span<const __nv_bfloat16>,
                              std::span<const __nv_bfloat16>, float, std::span<double>, std::span<double>);

}  // namespace course::half_matmul
