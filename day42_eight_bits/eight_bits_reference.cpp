// The reference: the operands as floats, which hold them exactly, B transposed, and plain loops in
// double.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "common/check/matmul_reference.hpp"
#include "eight_bits.hpp"

namespace day42 {

template <class T>
std::vector<float> as_floats(std::span<const T> values) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](T value) { return static_cast<float>(value); });
    return floats;
}

template <class T>
std::vector<float> transposed(std::span<const T> values, std::size_t rows, std::size_t cols) {
    if (values.size() != rows * cols)
        throw std::invalid_argument("transposed: there are " + std::to_string(values.size()) +
                                    " values; expected " + std::to_string(rows) + " x " +
                                    std::to_string(cols));
    std::vector<float> floats(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        floats[i % cols * rows + i / cols] = static_cast<float>(values[i]);
    return floats;
}

template <class T>
void multiply_on_cpu(const Shape& shape, std::span<const T> a, std::span<const T> b,
                     std::span<double> product, std::span<double> magnitude) {
    course::multiply_on_cpu(shape.m, shape.n, shape.k, 1, as_floats(a), transposed(b, shape.n, shape.k), 0,
                            product, magnitude);
}

#define DAY42_FOR_TYPE(T)                                                                                  \
    template std::vector<float> as_floats(std::span<const T>);                                             \
    template std::vector<float> transposed(std::span<const T>, std::size_t, std::size_t);                  \
    template void multiply_on_cpu(const Shape&, std::span<const T>, std::span<const T>, std::span<double>, \
                                  std::span<double>);
DAY42_FOR_TYPE(std::int8_t)
DAY42_FOR_TYPE(__nv_fp8_e4m3)
DAY42_FOR_TYPE(__nv_fp8_e5m2)
#undef DAY42_FOR_TYPE

}  // namespace day42
