#include "reference.hpp"

#include <algorithm>
#include <vector>

namespace course_python::reference {
namespace {

using course::DeviceMatrix;
using course::DeviceSpan;

template <class T>
std::span<T> host(DeviceSpan<T> span) {
    return {span.data(), span.size()};
}

// The references need matrices without gaps between the rows.
template <class T>
std::vector<T> packed(DeviceMatrix<const T> matrix) {
    std::vector<T> values;
    values.reserve(matrix.rows() * matrix.cols());
    for (std::size_t row = 0; row < matrix.rows(); ++row) {
        const T* const begin = matrix.data() + row * matrix.leading_dimension();
        values.insert(values.end(), begin, begin + matrix.cols());
    }
    return values;
}

template <class From, class T>
void unpack(const std::vector<From>& values, DeviceMatrix<T> matrix) {
    const auto convert = [](From value) {
        if constexpr (std::is_same_v<From, double>) {
            return static_cast<T>(static_cast<float>(value));  // by way of float, as in the kernels
        } else {
            return value;
        }
    };
    for (std::size_t row = 0; row < matrix.rows(); ++row) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * matrix.cols());
        std::transform(begin, begin + static_cast<std::ptrdiff_t>(matrix.cols()),
                       matrix.data() + row * matrix.leading_dimension(), convert);
    }
}

template <class T>
std::size_t size(DeviceMatrix<T> matrix) {
    return matrix.rows() * matrix.cols();
}

template <class T>
std::span<const T> view(const std::vector<T>& values) {
    return values;
}

}  // namespace

template <class T>
void find_parameters(day30::Method method, DeviceMatrix<const T> in, DeviceSpan<float> scale,
                     DeviceSpan<std::int32_t> zero_point) {
    day30::find_parameters_on_cpu<T>({in.rows(), in.cols(), method}, packed(in), host(scale),
                                     host(zero_point));
}

template <class T>
void quantize_with(day30::Method method, DeviceMatrix<const T> in, DeviceSpan<const float> scale,
                   DeviceSpan<const std::int32_t> zero_point, DeviceMatrix<std::int8_t> out) {
    std::vector<std::int8_t> values(size(out));
    day30::quantize_on_cpu<T>({in.rows(), in.cols(), method}, packed(in), host(scale), host(zero_point),
                              values);
    unpack(values, out);
}

template <class T>
void dequantize(day30::Method method, DeviceMatrix<const std::int8_t> in, DeviceSpan<const float> scale,
                DeviceSpan<const std::int32_t> zero_point, DeviceMatrix<T> out) {
    std::vector<double> values(size(out));
    day30::dequantize_on_cpu({in.rows(), in.cols(), method}, packed(in), host(scale), host(zero_point),
                             values);
    unpack(values, out);
}

template <class T>
void quantize_blocks(day30::BlockFormat format, DeviceMatrix<const T> in, DeviceMatrix<std::uint8_t> codes,
                     DeviceMatrix<float> scales) {
    std::vector<std::uint8_t> packed_codes(size(codes));
    std::vector<float> packed_scales(size(scales));
    day30::quantize_blocks_on_cpu<T>(format, in.rows(), in.cols(), packed(in), packed_codes, packed_scales);
    unpack(packed_codes, codes);
    unpack(packed_scales, scales);
}

template <class T>
void dequantize_blocks(day30::BlockFormat format, DeviceMatrix<const std::uint8_t> codes,
                       DeviceMatrix<const float> scales, DeviceMatrix<T> out) {
    std::vector<double> values(size(out));
    day30::dequantize_blocks_on_cpu(format, out.rows(), out.cols(), packed(codes), packed(scales), values);
    unpack(values, out);
}

void int8_matmul(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
                 DeviceMatrix<std::int32_t> c) {
    std::vector<std::int32_t> sums(size(c));
    day31::int8_matmul_on_cpu({a.rows(), w.rows(), a.cols()}, packed(a), packed(w), sums);
    unpack(sums, c);
}

void llm_int8(const day32::Layer& layer) {
    const std::vector<__half> x = packed(layer.x);
    const std::vector<__half> w = packed(layer.w);
    const day32::HostLayer on_host{layer.shape(), layer.threshold, x, w};
    std::vector<double> y(size(layer.y));
    std::vector<double> allowed(y.size());
    day32::llm_int8_on_cpu(on_host, day32::outlier_columns_on_cpu(on_host), y, allowed);
    unpack(y, layer.y);
}

#define COURSE_INSTANTIATE(T)                                                                               \
    template void find_parameters<T>(day30::Method, DeviceMatrix<const T>, DeviceSpan<float>,               \
                                     DeviceSpan<std::int32_t>);                                             \
    template void quantize_with<T>(day30::Method, DeviceMatrix<const T>, DeviceSpan<const float>,           \
                                   DeviceSpan<const std::int32_t>, DeviceMatrix<std::int8_t>);              \
    template void dequantize<T>(day30::Method, DeviceMatrix<const std::int8_t>, DeviceSpan<const float>,    \
                                DeviceSpan<const std::int32_t>, DeviceMatrix<T>);                           \
    template void quantize_blocks<T>(day30::BlockFormat, DeviceMatrix<const T>, DeviceMatrix<std::uint8_t>, \
                                     DeviceMatrix<float>);                                                  \
    template void dequantize_blocks<T>(day30::BlockFormat, DeviceMatrix<const std::uint8_t>,                \
                                       DeviceMatrix<const float>, DeviceMatrix<T>);
COURSE_INSTANTIATE(float)
COURSE_INSTANTIATE(__half)
#undef COURSE_INSTANTIATE

}  // namespace course_python::reference
