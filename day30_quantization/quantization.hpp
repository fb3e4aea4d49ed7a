// Quantisation of a matrix to 8 bits: the host API of day 30. The kernels are in quantization.cuh
// and beyond/; blocks of a row, each with a scale, in 4 or 8 bits, are in beyond/blockwise.hpp.
//
//     quantise     q = saturate(round(x / scale) + zero_point)         dequantise     x' = (q - zero_point) scale
//
// Values that share a scale and a zero point are a group: the whole matrix, a row, or a column.
//   symmetric    scale = max |x| / 127, no zero point, q in [-127, 127];
//   asymmetric   the range from min(x) to max(x), widened to hold 0, becomes [-128, 127]: scale = range / 255,
//                zero_point = round(-min / scale) - 128. 0 is exact in both.
// round() goes to the nearest integer, ties to even. It rounds the exact product x * (1 / scale),
// where 1 / scale is a float. saturate() cuts off at the ends of the range of q.
//
// A scale that is found is 0, NaN, or a normal positive float; a given one may be any float, and
// changes the signs if it is negative. A zero point that is found is in [-128, 127]; a given one
// must be, and is 0 in the symmetric scheme. Given parameters lie in device memory, so the host
// does not check them: under another zero point, codes are not specified.
//
// Cases without a good answer:
//   a group of zeros, or so small that the scale      scale 0, all q = zero_point = 0
//   would be no normal float
//   a group with a NaN or an Inf                      scale NaN, zero_point 0, all q = 0: dequantised it is NaN,
//                                                     so the mistake stays visible
//   a given scale of 0, NaN or Inf, or too small to    all q = zero_point; dequantised, 0 times Inf is NaN
//   be a normal float
//   NaN under a given finite scale                    q = zero_point; Inf saturates
//
// Methods: B. Jacob et al., "Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference", 2018 (scale and zero point); T. Dettmers et al.,
// "LLM.int8()", 2022 (vector-wise absmax).
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "scheme.hpp"

namespace day30 {

struct Method {
    Scheme scheme = Scheme::kSymmetric;
    Granularity granularity = Granularity::kRow;
};

// "symmetric per row"
std::string name(Method method);

struct Problem {
    std::size_t rows = 0;
    std::size_t cols = 0;
    Method method{};
};

// How many scales there are: 1, rows or cols.
std::size_t group_count(const Problem& problem);

// Below, T is float or __half. Views may have any leading dimension and any alignment of their
// element; 16-byte aligned rows (8-byte aligned for int8) are faster, because accesses are then 16
// and 8 bytes wide. Work is queued on `stream`. Outputs must not overlap inputs. `scale` has
// group_count() elements; `zero_point` as many, or none in the symmetric scheme. If it has elements
// nevertheless, they are written as zeros and not read. std::invalid_argument for arguments unlike
// that, CudaError when a launch fails.

// Scales and zero points of the groups of `in`.
template <class T>
void find_parameters(Method method, course::DeviceMatrix<const T> in, course::DeviceSpan<float> scale,
                     course::DeviceSpan<std::int32_t> zero_point, cudaStream_t stream);

// Quantises with given parameters: found for this matrix, or earlier for similar ones.
template <class T>
void quantize_with(Method method, course::DeviceMatrix<const T> in, course::DeviceSpan<const float> scale,
                   course::DeviceSpan<const std::int32_t> zero_point, course::DeviceMatrix<std::int8_t> out,
                   cudaStream_t stream);

template <class T>
void dequantize(Method method, course::DeviceMatrix<const std::int8_t> in,
                course::DeviceSpan<const float> scale, course::DeviceSpan<const std::int32_t> zero_point,
                course::DeviceMatrix<T> out, cudaStream_t stream);

// Both together: parameters and quantised values of `in`.
template <class T>
using Launcher = void (*)(Method method, course::DeviceMatrix<const T> in,
                          course::DeviceMatrix<std::int8_t> out, course::DeviceSpan<float> scale,
                          course::DeviceSpan<std::int32_t> zero_point, cudaStream_t stream);
template <class T>
using Version = course::Version<Launcher<T>, Problem>;

// plain, two_passes, row_in_registers, and `auto`, which chooses the best of them.
template <class T>
std::span<const Version<T>> versions();

// A typical first attempt: each step is a function of host memory, which allocates device memory,
// fills it with zeros, copies there and back, and frees. Symmetric, per row; matrices packed.
template <class T>
void quantize_rows_of_host(std::size_t rows, std::size_t cols, std::span<const T> in,
                           std::span<std::int8_t> out, std::span<float> scale);

// The same on the CPU, for packed matrices. Bit for bit the GPU's results, NaN for NaN.
template <class T>
void find_parameters_on_cpu(const Problem& problem, std::span<const T> in, std::span<float> scale,
                            std::span<std::int32_t> zero_point);
template <class T>
void quantize_on_cpu(const Problem& problem, std::span<const T> in, std::span<const float> scale,
                     std::span<const std::int32_t> zero_point, std::span<std::int8_t> out);
void dequantize_on_cpu(const Problem& problem, std::span<const std::int8_t> in, std::span<const float> scale,
                       std::span<const std::int32_t> zero_point, std::span<double> out);

}  // namespace day30
