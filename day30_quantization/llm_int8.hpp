// The linear layer of LLM.int8(): Y = X W^T with X (tokens x inputs) and W (outputs x inputs) in half, most of it multiplied in 8 bits.
//
// A column of X in which some |x| reaches the threshold (or is NaN) is an outlier column. It stays in half:
//
//     Y = x_scale w_scale (X8 W8^T)    X8: rows of X without outlier columns, 8 bits, a scale for each row; W8 likewise
//       + Xo Wo^T                      the outlier columns of X and W, in half, summed in float
//
// A scale must reach to the largest number of its row. One outlier of 60 among numbers around 1 leaves the others 2 or 3 of the
// 127 steps; without it they have about 30.
//
// NaN and Inf in X make their column an outlier column, and so only their own row of Y NaN or Inf, as in exact arithmetic. NaN or Inf in
// a row of W makes that column of Y NaN. What is too large for a half becomes Inf.
//
// Method: T. Dettmers, M. Lewis, Y. Belkada, L. Zettlemoyer, "LLM.int8(): 8-bit Matrix Multiplication for Transformers at
// Scale", 2022, sections 3.1 and 3.2.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/bench/kernel_resources.hpp"
#include "common/bench/variant.hpp"
#include "common/bench/work.hpp"
#include "common/device/device_view.hpp"

namespace day30 {

inline constexpr float kThreshold = 6.0f;  // section 3.2

struct LayerShape {
    std::size_t tokens = 0;
    std::size_t outputs = 0;
    std::size_t inputs = 0;
};

struct Layer {
    course::DeviceMatrix<const __half> x;  // tokens x inputs
    course::DeviceMatrix<const __half> w;  // outputs x inputs
    course::DeviceMatrix<const std::int8_t>
        w8;                                   // w quantised, symmetric per row: once, when weights are loaded
    course::DeviceSpan<const float> w_scale;  // outputs
    course::DeviceMatrix<__half> y;           // tokens x outputs
    course::DeviceSpan<std::byte>
        workspace;                 // as much as the version asks for, aligned to 16 bytes; any content
    float threshold = kThreshold;  // 0 or more; Inf: only columns with NaN or Inf stay in half

    LayerShape shape() const { return {x.rows(), w.rows(), x.cols()}; }
};

// Queues the layer on `stream`; the host waits for nothing. Any shape with up to kLongestSum inputs, any alignment of elements; `fused`
// wants rows of w8 that begin at multiples of 16 bytes, and a GPU that its constraint has nothing against. y must not overlap what is read, nor the workspace anything.
// std::invalid_argument for arguments unlike that, CudaError when a launch fails.
struct LayerKernel {
    void (*launch)(const Layer& layer, cudaStream_t stream);
    std::size_t (*workspace)(const LayerShape& shape);  // bytes
    course::KernelResources (*resources)() = nullptr;
    bool wants_aligned_rows = false;
};
using LlmInt8 = course::Variant<LayerKernel, LayerShape>;

// separate_kernels, fused.
std::span<const LlmInt8> layer_variants();

// What a layer in half needs at the least, all of it read and written once: to time others against.
course::Work half_layer_work(const LayerShape& shape);

// The first step. keep[k] = 0 for an outlier column, 0xffff for the others; columns[0 .. count) are the outlier columns in ascending
// order. keep and columns have x.cols() elements, count has one. Without rows no column is an outlier column. Outputs must not overlap
// x nor one another; threshold is 0 or more. std::invalid_argument for arguments unlike that, CudaError when a launch fails.
void find_outlier_columns(course::DeviceMatrix<const __half> x, float threshold,
                          course::DeviceSpan<std::uint16_t> keep, course::DeviceSpan<std::uint32_t> columns,
                          course::DeviceSpan<std::uint32_t> count, cudaStream_t stream);

// The second: the kept columns of x, symmetric per row; outlier columns become 0. keep has x.cols() elements, scale x.rows(), out is
// shaped like x. Outputs must not overlap inputs nor one another. Throws as the first.
void quantize_kept_columns(course::DeviceMatrix<const __half> x, course::DeviceSpan<const std::uint16_t> keep,
                           course::DeviceMatrix<std::int8_t> out, course::DeviceSpan<float> scale,
                           cudaStream_t stream);

// The same layer on the CPU, in double, from the same 8-bit values; packed matrices. `allowed` is how far a version may be off, each
// element: the README derives it. The outlier columns are given: x may be some of the tokens that they were found in.
struct HostLayer {
    LayerShape shape;
    float threshold = kThreshold;
    std::span<const __half> x{};
    std::span<const __half> w{};
};
void llm_int8_on_cpu(const HostLayer& layer, std::span<const std::uint32_t> outlier_columns,
                     std::span<double> y, std::span<double> allowed);

// X W^T in double, without quantisation: what the layer is meant to be.
void linear_on_cpu(const HostLayer& layer, std::span<double> y);

// Which columns are outlier columns, ascending.
std::vector<std::uint32_t> outlier_columns_on_cpu(const HostLayer& layer);

// Sizes of the difference between two results: root of the mean square, and the largest magnitude, both divided by the root mean square of
// `exact`.
struct RelativeError {
    double root_mean_square = 0;
    double largest = 0;
};
RelativeError relative_error(std::span<const double> exact, std::span<const double> approximate);

}  // namespace day30
