// Convolutional layers: the host API of day 28. The kernels are in conv_layers.cuh and in beyond/.
// Shape is in layer.cuh.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "layer.cuh"

namespace day28 {

using course::DeviceSpan;

// Elements of the tensors. Throws std::invalid_argument, with the reason, for a shape that no
// version runs: an extent below 1 (N may be 0), a filter that is larger than the padded image, a
// tensor of more than 2^30 elements.
std::size_t inputs(const Shape& shape);   // x, N x C x H x W
std::size_t weights(const Shape& shape);  // w, K x C x R x S
std::size_t outputs(const Shape& shape);  // y, N x K x P x Q

std::string to_text(const Shape& shape);  // "64 x 3 x 224 x 224, 64 filters of 7 x 7, padding 3, stride 2"

// The passes of a layer in training. Each takes two tensors and computes the third. dx, dw and dy
// are the gradients of the loss with respect to x, w and y, and have their shapes.
enum class Pass {
    kForward,         // x and w give y
    kBackwardInput,   // dy and w give dx
    kBackwardWeights  // x and dy give dw
};
inline constexpr Pass kPasses[] = {Pass::kForward, Pass::kBackwardInput, Pass::kBackwardWeights};

std::string_view name(Pass pass);  // "forward", ...

// How long the tensors of a pass are, and how many products make one element of its result.
struct Lengths {
    std::size_t a;    // the first operand: x, dy, x
    std::size_t b;    // the second one: w, w, dy
    std::size_t out;  // y, dx, dw
    std::size_t terms;
};
Lengths lengths(Pass pass, const Shape& shape);

// One way to compute a pass.
template <class T>
struct Launcher {
    // Enqueues the pass on `stream`. The tensors have the lengths of lengths(), any alignment of 4
    // bytes, and `out` overlaps nothing. `scratch` is memory for intermediate results, at least as
    // long as scratch() asks for and 16-byte aligned; its contents afterwards are unspecified.
    // Throws std::invalid_argument for a bad argument and for a shape that the version cannot run,
    // CudaError when a launch fails.
    void (*run)(const Shape& shape, DeviceSpan<const T> a, DeviceSpan<const T> b, DeviceSpan<T> out,
                DeviceSpan<float> scratch, cudaStream_t stream) = nullptr;
    std::size_t (*scratch)(const Shape& shape) = nullptr;  // floats; nullptr: none
    int winograd = 0;  // m of F(m x m, 3 x 3), whose error bound differs; 0: products of x and w

    std::size_t scratch_floats(const Shape& shape) const { return scratch == nullptr ? 0 : scratch(shape); }
};

// The versions of a pass, slow to fast. FP32, x and y as NCHW (an image is C planes), w as KCRS.
using Version = course::Version<Launcher<float>, Shape>;
std::span<const Version> versions(Pass pass);

// Forward on tensor cores: x and y as NHWC (a pixel is C values side by side), w as KRSC. With
// float, operands are rounded to TF32. 16-byte aligned.
template <class T>
using TensorCoreVersion = course::Version<Launcher<T>, Shape>;
template <class T>
std::span<const TensorCoreVersion<T>> tensor_core_versions();  // T: float, __nv_bfloat16
// Each tile that tma_wgmma chooses from, as a version of its own.
std::span<const TensorCoreVersion<__nv_bfloat16>> tma_wgmma_tiles();

// The reference: plain loops in double, on all cores. `magnitude` is the sum of the absolute
// products behind each element, which an error bound is a multiple of. Operands as in the pass,
// NCHW. Throws std::invalid_argument where lengths do not fit.
struct Expected {
    std::vector<double> values;
    std::vector<double> magnitude;
};
Expected pass_on_cpu(Pass pass, const Shape& shape, std::span<const float> a, std::span<const float> b);

// For F(m x m, 3 x 3): the sums behind each element, with all additions in the transforms made
// additions of absolute values; and how many roundings an element suffers at most. Their product
// with half an epsilon bounds the error.
struct WinogradBound {
    std::vector<double> magnitude;
    std::size_t roundings;
};
WinogradBound winograd_bound(int m, Pass pass, const Shape& shape, std::span<const float> a,
                             std::span<const float> b);

}  // namespace day28
