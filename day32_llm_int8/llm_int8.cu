// Day 32's host code: argument checks, the workspace, the order of the steps, the list of versions.
// The kernels and their launches are in llm_int8.cuh and beyond/.
#include <array>
#include <string>
#include <string_view>
#include <type_traits>

#include "beyond/long_rows.cuh"
#include "beyond/tensor_core_products.cuh"
#include "common/check/check.hpp"
#include "common/check/matrix_arguments.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "llm_int8.cuh"
#include "llm_int8.hpp"

namespace day32 {
namespace {

using course::ceil_div;
using course::DeviceSpan;
using course::remainder_by_16;
using course::require_size;

// Divides a workspace into arrays, each aligned to 256 bytes. Without memory (nullptr) it only
// counts.
class Arena {
  public:
    explicit Arena(std::byte* begin) : begin_(begin) {}

    template <class T>
    DeviceSpan<T> take(std::size_t count) {
        const std::size_t at = used_;
        used_ += ceil_div<std::size_t>(count * sizeof(T), 256) * 256;
        T* const data = begin_ == nullptr ? nullptr : reinterpret_cast<T*>(begin_ + at);
        return DeviceSpan<T>::from_device_pointer(data, count);
    }

    std::size_t used() const { return used_; }

  private:
    std::byte* begin_;
    std::size_t used_ = 0;
};

std::size_t rounded_up(std::size_t value, std::size_t step) {
    return ceil_div(value, step) * step;
}

// The arrays in a workspace; `with_sums` for the versions that keep int32 sums there.
struct Arrays {
    DeviceSpan<std::uint16_t> keep;
    DeviceSpan<std::uint32_t> columns, count;
    DeviceSpan<float> x_scale;
    DeviceSpan<std::int8_t> x8_memory;
    DeviceSpan<__half> x_outliers, w_outliers;
    DeviceSpan<std::int32_t> sums;
    std::size_t x8_pitch, outlier_pitch, bytes;

    Arrays(const LayerShape& shape, std::byte* workspace, bool with_sums)
        : x8_pitch(rounded_up(shape.inputs, 16)), outlier_pitch(rounded_up(shape.inputs, Outliers::kTile)) {
        Arena arena(workspace);
        keep = arena.take<std::uint16_t>(shape.inputs);
        columns = arena.take<std::uint32_t>(shape.inputs);
        count = arena.take<std::uint32_t>(1);
        x_scale = arena.take<float>(shape.tokens);
        x8_memory = arena.take<std::int8_t>(shape.tokens * x8_pitch);
        x_outliers = arena.take<__half>(shape.tokens * outlier_pitch);
        w_outliers = arena.take<__half>(shape.outputs * outlier_pitch);
        if (with_sums) sums = arena.take<std::int32_t>(shape.tokens * shape.outputs);
        bytes = arena.used();
    }

    DeviceMatrix<std::int8_t> x8(const LayerShape& shape) const {
        return {x8_memory, shape.tokens, shape.inputs, x8_pitch};
    }
    Outliers outliers() const {
        return {columns.data(), count.data(), x_outliers.data(), w_outliers.data(), outlier_pitch};
    }
};

std::size_t separate_workspace(const LayerShape& shape) {
    return Arrays(shape, nullptr, true).bytes;
}
std::size_t fused_workspace(const LayerShape& shape) {
    return Arrays(shape, nullptr, false).bytes;
}

// Throws std::invalid_argument unless the layer is as llm_int8.hpp says. False when there is
// nothing to do.
bool check_layer(const Layer& layer, std::size_t workspace) {
    const auto [tokens, outputs, inputs] = layer.shape();
    require_shape("llm_int8: w", layer.w, outputs, inputs);
    require_shape("llm_int8: w8", layer.w8, outputs, inputs);
    require_size("llm_int8: w_scale", layer.w_scale.size(), outputs);
    require_shape("llm_int8: y", layer.y, tokens, outputs);
    course::require(layer.threshold >= 0, "llm_int8: threshold is ", layer.threshold, "; expected 0 or more");
    course::require(inputs <= kLongestSum, "llm_int8: inputs are ", inputs, "; expected at most ",
                    kLongestSum, ", or sums would not fit in 32 bits");
    course::require(layer.workspace.size() >= workspace, "llm_int8: workspace has ", layer.workspace.size(),
                    " bytes; expected at least ", workspace);
    course::require(course::is_aligned(layer.workspace.data(), 16),
                    "llm_int8: workspace has an address % 16 of ", remainder_by_16(layer.workspace.data()),
                    "; expected 0");
    const auto apart = [&](std::string_view what, auto operand) {
        require_apart("llm_int8: y", layer.y, what, operand);
        require_apart("llm_int8: workspace", layer.workspace, what, operand);
    };
    apart("x", layer.x);
    apart("w", layer.w);
    apart("w8", layer.w8);
    apart("w_scale", layer.w_scale);
    require_apart("llm_int8: workspace", layer.workspace, "y", layer.y);
    return tokens != 0 && outputs != 0;
}

// The first steps of both versions: X in 8 bits, and the outlier columns of both operands.
void prepare(const Layer& layer, const Arrays& arrays, cudaStream_t stream) {
    find_outlier_columns(layer.x, layer.threshold, arrays.keep, arrays.columns, arrays.count, stream);
    quantize_kept_columns(layer.x, arrays.keep, arrays.x8(layer.shape()), arrays.x_scale, stream);
    launch_gather_outliers(layer.x, layer.w, arrays.outliers(), stream);
    CUDA_CHECK_LAUNCH();
}

// The last steps of plain and separate_kernels: sums become floats, then Y.
void finish(const Layer& layer, const Arrays& arrays, cudaStream_t stream) {
    const auto [tokens, outputs, inputs] = layer.shape();
    launch_dequantize_sums(arrays.sums.data(), tokens, outputs, arrays.x_scale.data(), layer.w_scale.data(),
                           stream);
    CUDA_CHECK_LAUNCH();
    launch_add_outliers(arrays.sums.data(), arrays.outliers(), layer.y, stream);
    CUDA_CHECK_LAUNCH();
}

void run_plain(const Layer& layer, cudaStream_t stream) {
    if (!check_layer(layer, separate_workspace(layer.shape()))) return;
    const Arrays arrays(layer.shape(), layer.workspace.data(), true);
    prepare(layer, arrays, stream);
    launch_plain_product(arrays.x8(layer.shape()), layer.w8, arrays.sums.data(), stream);
    CUDA_CHECK_LAUNCH();
    finish(layer, arrays, stream);
}

std::string separate_constraint(const LayerShape& = {}) {
    return course::why_no_tensor_cores(int8_product<ProductShape>, ProductShape::SHARED);
}

void run_separate(const Layer& layer, cudaStream_t stream) {
    const std::string reason = separate_constraint();
    course::require(reason.empty(), "llm_int8: this version ", reason);
    require_aligned_rows("llm_int8: w8", layer.w8);
    if (!check_layer(layer, separate_workspace(layer.shape()))) return;
    const auto [tokens, outputs, inputs] = layer.shape();
    const Arrays arrays(layer.shape(), layer.workspace.data(), true);
    prepare(layer, arrays, stream);
    launch_int8_product<ProductShape>(arrays.x8(layer.shape()), layer.w8, {arrays.sums, tokens, outputs},
                                      stream);
    finish(layer, arrays, stream);
}

std::string fused_constraint(const LayerShape& = {}) {
    return course::why_no_tensor_cores(fused_layer<FusedShape>, FusedShape::SHARED);
}

void run_fused(const Layer& layer, cudaStream_t stream) {
    const std::string reason = fused_constraint();
    course::require(reason.empty(), "llm_int8: this version ", reason);
    require_aligned_rows("llm_int8: w8", layer.w8);
    if (!check_layer(layer, fused_workspace(layer.shape()))) return;
    const Arrays arrays(layer.shape(), layer.workspace.data(), false);
    prepare(layer, arrays, stream);
    launch_fused_layer<FusedShape>(arrays.x8(layer.shape()), arrays.x_scale.data(), layer.w8,
                                   layer.w_scale.data(), arrays.outliers(), layer.y, stream);
}

// The least traffic: X and W8 are read once, Y is written once. The outlier columns' weights in
// half are not counted.
course::Work work(const LayerShape& shape) {
    const auto m = static_cast<double>(shape.tokens);
    const auto n = static_cast<double>(shape.outputs);
    const auto k = static_cast<double>(shape.inputs);
    return {.bytes = 2 * m * k + n * k + 2 * m * n,
            .written = 2 * m * n,
            .flops = 2 * m * n * k,
            .arithmetic = course::Arithmetic::kOther};
}

course::KernelResources fused_resources() {
    course::allow_shared_bytes(fused_layer<FusedShape>, FusedShape::SHARED);
    return course::resources_of(fused_layer<FusedShape>, FusedShape::THREADS, FusedShape::SHARED);
}

}  // namespace

course::Work half_layer_work(const LayerShape& shape) {
    course::Work half = work(shape);
    half.bytes += static_cast<double>(shape.outputs) * static_cast<double>(shape.inputs);  // W: 2 bytes each
    return half;
}

void find_outlier_columns(DeviceMatrix<const __half> x, float threshold, DeviceSpan<std::uint16_t> keep,
                          DeviceSpan<std::uint32_t> columns, DeviceSpan<std::uint32_t> count,
                          cudaStream_t stream) {
    require_size("find_outlier_columns: keep", keep.size(), x.cols());
    require_size("find_outlier_columns: columns", columns.size(), x.cols());
    require_size("find_outlier_columns: count", count.size(), 1);
    course::require(threshold >= 0, "find_outlier_columns: threshold is ", threshold, "; expected 0 or more");
    require_apart("find_outlier_columns: keep", keep, "x", x);
    require_apart("find_outlier_columns: columns", columns, "x", x);
    require_apart("find_outlier_columns: count", count, "x", x);
    require_apart("find_outlier_columns: keep", keep, "columns", columns);
    require_apart("find_outlier_columns: keep", keep, "count", count);
    require_apart("find_outlier_columns: columns", columns, "count", count);
    if (x.cols() != 0)
        CUDA_CHECK(cudaMemsetAsync(keep.data(), 0xff, keep.size() * sizeof(std::uint16_t), stream));
    if (x.rows() != 0 && x.cols() != 0) {
        const auto mark = rows_are_aligned(x, 16) ? launch_mark_outliers<true> : launch_mark_outliers<false>;
        mark(x, threshold, keep.data(), stream);
        CUDA_CHECK_LAUNCH();
    }
    launch_list_outliers(keep.data(), x.cols(), columns.data(), count.data(), stream);
    CUDA_CHECK_LAUNCH();
}

namespace {

// Calls function(a constant) with the fewest threads, a power of two from 128 to 1024, whose
// registers hold a row. False if the row is too long.
template <int kThreads = 128, class Function>
bool with_kept_threads(std::size_t cols, const Function& function) {
    if (cols <= std::size_t{kThreads} * kKeptPacks * kOctet) {
        function(std::integral_constant<int, kThreads>{});
        return true;
    }
    if constexpr (kThreads < 1024) return with_kept_threads<2 * kThreads>(cols, function);
    return false;
}

}  // namespace

void quantize_kept_columns(DeviceMatrix<const __half> x, DeviceSpan<const std::uint16_t> keep,
                           DeviceMatrix<std::int8_t> out, DeviceSpan<float> scale, cudaStream_t stream) {
    require_size("quantize_kept_columns: keep", keep.size(), x.cols());
    require_size("quantize_kept_columns: scale", scale.size(), x.rows());
    require_shape("quantize_kept_columns: out", out, x.rows(), x.cols());
    require_apart("quantize_kept_columns: out", out, "x", x);
    require_apart("quantize_kept_columns: out", out, "keep", keep);
    require_apart("quantize_kept_columns: out", out, "scale", scale);
    require_apart("quantize_kept_columns: scale", scale, "x", x);
    require_apart("quantize_kept_columns: scale", scale, "keep", keep);
    if (x.rows() == 0) return;
    const bool aligned =
        rows_are_aligned(x, 16) && rows_are_aligned(out, 8) && course::is_aligned(keep.data(), 16);
    const bool kept = with_kept_threads(x.cols(), [&](auto threads) {
        const auto launch = aligned ? launch_kept_row_in_registers<true, threads>
                                    : launch_kept_row_in_registers<false, threads>;
        launch(x, keep.data(), out, scale.data(), stream);
    });
    if (!kept) {
        const auto launch = aligned ? launch_kept_row_in_passes<true> : launch_kept_row_in_passes<false>;
        launch(x, keep.data(), out, scale.data(), stream);
    }
    CUDA_CHECK_LAUNCH();
}

std::span<const Version> versions() {
    static const std::array<Version, 3> list = {{
        {"plain", "a kernel for each step, a thread for each result", {run_plain, separate_workspace}, work},
        {"separate_kernels",
         "the int8 product on tensor cores",
         {run_separate, separate_workspace, nullptr, true},
         work,
         separate_constraint},
        {"fused",
         "scales and outlier columns in the int8 product's registers",
         {run_fused, fused_workspace, fused_resources, true},
         work,
         fused_constraint},
    }};
    return list;
}

}  // namespace day32
