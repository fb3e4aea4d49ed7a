// The CPU references of days 30 to 32 for matrices of any leading dimension: for tensors of the CPU
// in builds for a GPU. The views are of host memory here. Results equal those of the kernels; those
// of the layer may differ in the last bit.
#pragma once

#include <cstdint>

#include "beyond/blockwise.hpp"
#include "int8_matmul.hpp"
#include "llm_int8.hpp"
#include "quantization.hpp"

namespace course_python::reference {

template <class T>
void find_parameters(day30::Method method, course::DeviceMatrix<const T> in, course::DeviceSpan<float> scale,
                     course::DeviceSpan<std::int32_t> zero_point);
template <class T>
void quantize_with(day30::Method method, course::DeviceMatrix<const T> in,
                   course::DeviceSpan<const float> scale, course::DeviceSpan<const std::int32_t> zero_point,
                   course::DeviceMatrix<std::int8_t> out);
template <class T>
void dequantize(day30::Method method, course::DeviceMatrix<const std::int8_t> in,
                course::DeviceSpan<const float> scale, course::DeviceSpan<const std::int32_t> zero_point,
                course::DeviceMatrix<T> out);
template <class T>
void quantize_blocks(day30::BlockFormat format, course::DeviceMatrix<const T> in,
                     course::DeviceMatrix<std::uint8_t> codes, course::DeviceMatrix<float> scales);
template <class T>
void dequantize_blocks(day30::BlockFormat format, course::DeviceMatrix<const std::uint8_t> codes,
                       course::DeviceMatrix<const float> scales, course::DeviceMatrix<T> out);
void int8_matmul(course::DeviceMatrix<const std::int8_t> a, course::DeviceMatrix<const std::int8_t> w,
                 course::DeviceMatrix<std::int32_t> c);
void llm_int8(const day32::Layer& layer);

}  // namespace course_python::reference
