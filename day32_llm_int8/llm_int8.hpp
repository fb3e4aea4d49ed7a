// The linear layer of LLM.int8(): Y = X W^T with X (tokens x inputs) and W (outputs x inputs) in
// half, most of it multiplied in 8 bits.
//
// A column of X in which some |x| reaches the threshold (or is NaN) is an outlier column. It stays in half:
//
//     Y = x_scale w_scale (X8 W8^T)   X8: rows of X without outlier columns, 8 bits, a scale per row; W8 likewise
//       + Xo Wo^T                     the outlier columns of X and W, in half, summed in float
//
// NaN and Inf in X make their column an outlier column, so only their own row of Y becomes NaN or
// Inf, as in exact arithmetic. NaN or Inf in a row of W makes that column of Y NaN. Given scales of
// W may be any floats, and multiply their column: 0 times Inf is NaN. Values too large for a half
// become Inf.
//
// Method: T. Dettmers, M. Lewis, Y. Belkada, L. Zettlemoyer, "LLM.int8(): 8-bit Matrix
// Multiplication for Transformers at Scale", 2022, sections 3.1 and 3.2. The kernels are in
// llm_int8.cuh and beyond/.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/bench/kernel_resources.hpp"
#include "common/bench/version.hpp"
#include "common/bench/work.hpp"
#include "common/device/device_view.hpp"

namespace day32 {

inline constexpr float kThreshold = 6.0f;           // section 3.2
inline constexpr std::size_t kLongestSum = 131071;  // inputs: K * 127 * 127 must fit in 31 bits

struct LayerShape {
    std::size_t tokens = 0;
    std::size_t outputs = 0;
    std::size_t inputs = 0;
};

struct Layer {
    // tokens x inputs
    course::DeviceMatrix<const __half> x;
    // outputs x inputs
    course::DeviceMatrix<const __half> w;
    // w quantised, symmetric per row: once, when weights are loaded
    course::DeviceMatrix<const std::int8_t> w8;
    // outputs
    course::DeviceSpan<const float> w_scale;
    // tokens x outputs
    course::DeviceMatrix<__half> y;
    // as many bytes as the version asks for, aligned to 16 bytes; any content
    course::DeviceSpan<std::byte> workspace;
    // 0 or more; Inf: only columns with NaN or Inf stay in half
    float threshold = kThreshold;

    LayerShape shape() const { return {x.rows(), w.rows(), x.cols()}; }
};

// Queues the layer on `stream`; the host does not wait. Any shape with up to kLongestSum inputs,
// any alignment of elements. separate_kernels and fused require 16-byte aligned rows of w8, and a
// GPU with tensor cores (their constraint names what is missing). y must not overlap any input; the
// workspace must not overlap anything. std::invalid_argument for arguments unlike that, CudaError
// when a launch fails.
struct Launcher {
    void (*launch)(const Layer& layer, cudaStream_t stream);
    std::size_t (*workspace)(const LayerShape& shape);  // bytes
    course::KernelResources (*resources)() = nullptr;
    bool needs_aligned_rows = false;
};
using Version = course::Version<Launcher, LayerShape>;

// plain, separate_kernels, fused.
std::span<const Version> versions();

// The least bytes that a layer in half reads and writes, for the peer.
course::Work half_layer_work(const LayerShape& shape);

// The first step. keep[k] = 0 for an outlier column, 0xffff for the others; columns[0 .. count) are
// the outlier columns in ascending order. keep and columns have x.cols() elements, count has one.
// Without rows no column is an outlier column. Outputs must not overlap x or one another; threshold
// is 0 or more. std::invalid_argument for arguments unlike that, CudaError when a launch fails.
void find_outlier_columns(course::DeviceMatrix<const __half> x, float threshold,
                          course::DeviceSpan<std::uint16_t> keep, course::DeviceSpan<std::uint32_t> columns,
                          course::DeviceSpan<std::uint32_t> count, cudaStream_t stream);

// The second step: the kept columns of x, symmetric per row; outlier columns become 0. keep has
// x.cols() elements, scale x.rows(), out is shaped like x. Outputs must not overlap inputs or one
// another. Throws like the first step. With keep all 0xffff it quantises weights.
void quantize_kept_columns(course::DeviceMatrix<const __half> x, course::DeviceSpan<const std::uint16_t> keep,
                           course::DeviceMatrix<std::int8_t> out, course::DeviceSpan<float> scale,
                           cudaStream_t stream);

// The same layer on the CPU, in double, from the same 8-bit values; packed matrices. `allowed` is
// the error bound of each element: beyond/README.md derives it. The outlier columns are given,
// because x may be only some of the tokens that they were found in.
struct HostLayer {
    LayerShape shape;
    float threshold = kThreshold;
    std::span<const __half> x{};
    std::span<const __half> w{};
};
void llm_int8_on_cpu(const HostLayer& layer, std::span<const std::uint32_t> outlier_columns,
                     std::span<double> y, std::span<double> allowed);

// X W^T in double, without quantisation.
void linear_on_cpu(const HostLayer& layer, std::span<double> y);

// The outlier columns, ascending.
std::vector<std::uint32_t> outlier_columns_on_cpu(const HostLayer& layer);

// A matrix in 8 bits, symmetric per row: bit for bit what quantize_kept_columns() finds.
void quantize_rows_on_cpu(std::size_t rows, std::size_t cols, std::span<const __half> in,
                          std::span<std::int8_t> out, std::span<float> scale);

}  // namespace day32
