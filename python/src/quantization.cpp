// Values in 8 and 4 bits: days 30 to 32. The functions that users call are in
// cuda_day_by_day/_quantization.py.
#include "quantization.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "arguments.hpp"
#include "beyond/blockwise.hpp"
#include "call.hpp"
#include "common/device/device_buffer.hpp"
#include "int8_matmul.hpp"
#include "llm_int8.hpp"
#include "modules.hpp"
#include "reference.hpp"

namespace course_python {
namespace {

namespace nb = nanobind;
using nb::handle;

// --- Arguments that are no tensors ---------------------------------------------------------------

day30::Method method(const std::string& scheme, const std::string& per) {
    using day30::Granularity, day30::Scheme;
    static constexpr std::array<std::pair<const char*, Scheme>, 2> kSchemes = {
        {{"symmetric", Scheme::kSymmetric}, {"asymmetric", Scheme::kAsymmetric}}};
    static constexpr std::array<std::pair<const char*, Granularity>, 3> kGranularities = {
        {{"tensor", Granularity::kTensor}, {"row", Granularity::kRow}, {"column", Granularity::kColumn}}};
    return {choose("scheme", scheme, kSchemes), choose("per", per, kGranularities)};
}

day30::BlockFormat block_format(const std::string& code, std::size_t block) {
    static constexpr std::array<std::pair<const char*, day30::Code>, 3> kCodes = {
        {{"int8", day30::Code::kInt8}, {"int4", day30::Code::kInt4}, {"nf4", day30::Code::kNf4}}};
    const day30::BlockFormat format{choose("code", code, kCodes), block};
    for (const std::size_t known : {16U, 32U, 64U, 128U, 256U})
        if (block == known) return format;
    throw std::invalid_argument(fmt::format("block is {}; expected 16, 32, 64, 128 or 256", block));
}

// --- 8 bits --------------------------------------------------------------------------------------

// How many scales a matrix of that shape has.
std::size_t group_count(std::size_t rows, std::size_t cols, const std::string& per) {
    return day30::group_count({rows, cols, method("symmetric", per)});
}

// Zero points, or none if the scheme is symmetric.
template <class T>
course::DeviceSpan<T> zero_points(day30::Method method, const Tensor* tensor, std::size_t count) {
    const bool wanted = method.scheme == day30::Scheme::kAsymmetric;
    if (wanted != (tensor != nullptr)) {
        throw std::invalid_argument(wanted
                                        ? "zero_point is None; expected a tensor, for scheme is 'asymmetric'"
                                        : "zero_point is a tensor; expected None, for scheme is 'symmetric'");
    }
    return wanted ? tensor->vector<T>(count) : course::DeviceSpan<T>();
}

void find_parameters(const std::string& scheme, const std::string& per, handle x, handle scale,
                     handle zero_point, std::uintptr_t stream) {
    Call call("find_parameters", stream);
    const Tensor& from = call.input("x", x);
    const Tensor& to_scale = call.output("scale", scale);
    const Tensor* to_zero = zero_point.is_none() ? nullptr : &call.output("zero_point", zero_point);
    with_float_type(from, [&](auto value) {
        using T = decltype(value);
        const auto in = from.matrix<const T>();
        const day30::Method how = method(scheme, per);
        const std::size_t count = day30::group_count({in.rows(), in.cols(), how});
        const auto scales = to_scale.vector<float>(count);
        const auto zeros = zero_points<std::int32_t>(how, to_zero, count);
        call.run([&](cudaStream_t on) { day30::find_parameters<T>(how, in, scales, zeros, on); },
                 [&] { reference::find_parameters<T>(how, in, scales, zeros); });
    });
}

void quantize(const std::string& scheme, const std::string& per, handle x, handle values, handle scale,
              handle zero_point, std::uintptr_t stream) {
    Call call("quantize", stream);
    const Tensor& from = call.input("x", x);
    const Tensor& to = call.output("out.values", values);
    const Tensor& to_scale = call.output("out.scale", scale);
    const Tensor* to_zero = zero_point.is_none() ? nullptr : &call.output("out.zero_point", zero_point);
    with_float_type(from, [&](auto value) {
        using T = decltype(value);
        const auto in = from.matrix<const T>();
        const auto out = to.matrix<std::int8_t>(in.rows(), in.cols());
        const day30::Method how = method(scheme, per);
        const std::size_t count = day30::group_count({in.rows(), in.cols(), how});
        const auto scales = to_scale.vector<float>(count);
        const auto zeros = zero_points<std::int32_t>(how, to_zero, count);
        call.run(
            [&](cudaStream_t on) {
                course::find_version(day30::versions<T>(), "auto").launcher(how, in, out, scales, zeros, on);
            },
            [&] {
                reference::find_parameters<T>(how, in, scales, zeros);
                reference::quantize_with<T>(how, in, scales, zeros, out);
            });
    });
}

void quantize_with(const std::string& scheme, const std::string& per, handle x, handle scale,
                   handle zero_point, handle values, std::uintptr_t stream) {
    Call call("quantize_with", stream);
    const Tensor& from = call.input("x", x);
    const Tensor& with_scale = call.input("scale", scale);
    const Tensor* with_zero = zero_point.is_none() ? nullptr : &call.input("zero_point", zero_point);
    const Tensor& to = call.output("out", values);
    with_float_type(from, [&](auto value) {
        using T = decltype(value);
        const auto in = from.matrix<const T>();
        const auto out = to.matrix<std::int8_t>(in.rows(), in.cols());
        const day30::Method how = method(scheme, per);
        const std::size_t count = day30::group_count({in.rows(), in.cols(), how});
        const auto scales = with_scale.vector<const float>(count);
        const auto zeros = zero_points<const std::int32_t>(how, with_zero, count);
        call.run([&](cudaStream_t on) { day30::quantize_with<T>(how, in, scales, zeros, out, on); },
                 [&] { reference::quantize_with<T>(how, in, scales, zeros, out); });
    });
}

void dequantize(const std::string& scheme, const std::string& per, handle values, handle scale,
                handle zero_point, handle out, std::uintptr_t stream) {
    Call call("dequantize", stream);
    const Tensor& from = call.input("q.values", values);
    const Tensor& with_scale = call.input("q.scale", scale);
    const Tensor* with_zero = zero_point.is_none() ? nullptr : &call.input("q.zero_point", zero_point);
    const Tensor& to = call.output("out", out);
    with_float_type(to, [&](auto value) {
        using T = decltype(value);
        const auto in = from.matrix<const std::int8_t>();
        const auto result = to.matrix<T>(in.rows(), in.cols());
        const day30::Method how = method(scheme, per);
        const std::size_t count = day30::group_count({in.rows(), in.cols(), how});
        const auto scales = with_scale.vector<const float>(count);
        const auto zeros = zero_points<const std::int32_t>(how, with_zero, count);
        call.run([&](cudaStream_t on) { day30::dequantize<T>(how, in, scales, zeros, result, on); },
                 [&] { reference::dequantize<T>(how, in, scales, zeros, result); });
    });
}

// --- Blocks of a row -----------------------------------------------------------------------------

// Bytes of codes and number of scales that a row of `cols` values takes.
std::pair<std::size_t, std::size_t> block_columns(const std::string& code, std::size_t block,
                                                  std::size_t cols) {
    const day30::BlockFormat format = block_format(code, block);
    return {format.bytes(cols), format.scales(cols)};
}

void quantize_blocks(const std::string& code, std::size_t block, handle x, handle codes, handle scales,
                     std::uintptr_t stream) {
    Call call("quantize_blocks", stream);
    const Tensor& from = call.input("x", x);
    const Tensor& to_codes = call.output("out.codes", codes);
    const Tensor& to_scales = call.output("out.scales", scales);
    with_float_type(from, [&](auto value) {
        using T = decltype(value);
        const day30::BlockFormat format = block_format(code, block);
        const auto in = from.matrix<const T>();
        const auto out = to_codes.matrix<std::uint8_t>(in.rows(), format.bytes(in.cols()));
        const auto out_scales = to_scales.matrix<float>(in.rows(), format.scales(in.cols()));
        call.run([&](cudaStream_t on) { day30::quantize_blocks<T>(format, in, out, out_scales, on); },
                 [&] { reference::quantize_blocks<T>(format, in, out, out_scales); });
    });
}

void dequantize_blocks(const std::string& code, std::size_t block, handle codes, handle scales, handle out,
                       std::uintptr_t stream) {
    Call call("dequantize_blocks", stream);
    const Tensor& from_codes = call.input("q.codes", codes);
    const Tensor& from_scales = call.input("q.scales", scales);
    const Tensor& to = call.output("out", out);
    with_float_type(to, [&](auto value) {
        using T = decltype(value);
        const day30::BlockFormat format = block_format(code, block);
        const auto result = to.matrix<T>();
        const auto in = from_codes.matrix<const std::uint8_t>(result.rows(), format.bytes(result.cols()));
        const auto in_scales = from_scales.matrix<const float>(result.rows(), format.scales(result.cols()));
        call.run([&](cudaStream_t on) { day30::dequantize_blocks<T>(format, in, in_scales, result, on); },
                 [&] { reference::dequantize_blocks<T>(format, in, in_scales, result); });
    });
}

// --- Products ------------------------------------------------------------------------------------

void require_sum_that_fits(const char* what, std::size_t terms) {
    if (terms > day31::kLongestSum) {
        throw std::invalid_argument(
            fmt::format("{} has {} columns; expected at most {}, or sums would not fit in 32 bits", what,
                        terms, day31::kLongestSum));
    }
}

void int8_matmul(handle a, handle w, handle out, std::uintptr_t stream) {
    Call call("int8_matmul", stream);
    const Tensor& left = call.input("a", a);
    const Tensor& right = call.input("w", w);
    const Tensor& to = call.output("out", out);
    const auto rows = left.matrix<const std::int8_t>();
    const auto columns = right.matrix<const std::int8_t>();
    const auto weights = right.matrix<const std::int8_t>(columns.rows(), rows.cols());
    const auto result = to.matrix<std::int32_t>(rows.rows(), weights.rows());
    require_sum_that_fits("a", rows.cols());
    call.run(
        [&](cudaStream_t on) {
            course::find_version(day31::versions(), "auto").launcher.launch(rows, weights, result, on);
        },
        [&] { reference::int8_matmul(rows, weights, result); });
}

const day32::Launcher& layer_launcher() {
    return course::find_version(day32::versions(), "fused").launcher;
}

std::size_t llm_int8_workspace(std::size_t tokens, std::size_t outputs, std::size_t inputs) {
    return layer_launcher().workspace({tokens, outputs, inputs});
}

// Rows of w8 must begin at multiples of 16 bytes. The workspace may be None on the CPU.
void llm_int8(handle x, handle w, handle w8, handle w_scale, handle out, handle workspace, float threshold,
              std::uintptr_t stream) {
    if (!(threshold >= 0))
        throw std::invalid_argument(fmt::format("threshold is {}; expected 0 or more", threshold));
    Call call("llm_int8", stream);
    const Tensor& activations = call.input("x", x);
    const Tensor& weights = call.input("weight", w);
    const Tensor& weights8 = call.input("weight8", w8);
    const Tensor& scales = call.input("weight_scale", w_scale);
    const Tensor& result = call.output("out", out);
    day32::Layer layer;
    layer.threshold = threshold;
    layer.w = weights.matrix<const __half>();
    const std::size_t outputs = layer.w.rows(), inputs = layer.w.cols();
    require_sum_that_fits("weight", inputs);
    layer.x = activations.matrix<const __half>();
    layer.x = activations.matrix<const __half>(layer.x.rows(), inputs);
    layer.w8 = weights8.matrix<const std::int8_t>(outputs, inputs);
    layer.w_scale = scales.vector<const float>(outputs);
    layer.y = result.matrix<__half>(layer.x.rows(), outputs);
    const std::size_t bytes = layer_launcher().workspace(layer.shape());
    course::DeviceBuffer<std::byte> of_the_stand_in;
    if (call.on_gpu()) {
        layer.workspace = call.output("workspace", workspace).vector<std::byte>(bytes);
    } else if (course::is_cpu_stand_in()) {
        of_the_stand_in = course::DeviceBuffer<std::byte>(bytes);
        layer.workspace = of_the_stand_in.span();
    }
    call.run([&](cudaStream_t on) { layer_launcher().launch(layer, on); },
             [&] { reference::llm_int8(layer); });
}

}  // namespace

void define_quantization(nb::module_& module) {
    using namespace nb::literals;
    module.attr("threshold") = day32::kThreshold;

    module.def("group_count", &group_count, "rows"_a, "cols"_a, "per"_a);
    module.def("find_parameters", &find_parameters, "scheme"_a, "per"_a, "x"_a, "scale"_a,
               "zero_point"_a.none(), "stream"_a);
    module.def("quantize", &quantize, "scheme"_a, "per"_a, "x"_a, "values"_a, "scale"_a,
               "zero_point"_a.none(), "stream"_a);
    module.def("quantize_with", &quantize_with, "scheme"_a, "per"_a, "x"_a, "scale"_a, "zero_point"_a.none(),
               "values"_a, "stream"_a);
    module.def("dequantize", &dequantize, "scheme"_a, "per"_a, "values"_a, "scale"_a, "zero_point"_a.none(),
               "out"_a, "stream"_a);
    module.def("block_columns", &block_columns, "code"_a, "block"_a, "cols"_a);
    module.def("quantize_blocks", &quantize_blocks, "code"_a, "block"_a, "x"_a, "codes"_a, "scales"_a,
               "stream"_a);
    module.def("dequantize_blocks", &dequantize_blocks, "code"_a, "block"_a, "codes"_a, "scales"_a, "out"_a,
               "stream"_a);
    module.def("int8_matmul", &int8_matmul, "a"_a, "w"_a, "out"_a, "stream"_a);
    module.def("llm_int8_workspace", &llm_int8_workspace, "tokens"_a, "outputs"_a, "inputs"_a);
    module.def("llm_int8", &llm_int8, "x"_a, "weight"_a, "weight8"_a, "weight_scale"_a, "out"_a,
               "workspace"_a.none(), "threshold"_a, "stream"_a);
}

}  // namespace course_python
