// Day 30's host code: argument checks, the choice of the kernel's constants, the list of versions.
// The kernels and their launches are in quantization.cuh and beyond/groups.cuh.
#include <array>
#include <string>
#include <string_view>

#include "beyond/groups.cuh"
#include "common/check/check.hpp"
#include "common/check/matrix_arguments.hpp"
#include "common/device/device_buffer.hpp"
#include "quantization.cuh"
#include "quantization.hpp"

namespace day30 {
namespace {

using course::Argument;
using course::DeviceSpan;
using course::require_size;

template <auto kValue>
struct Constant {
    static constexpr auto value = kValue;
};

// Calls function(scheme, granularity, aligned) with constants for the values.
template <class Function>
void with_constants(Method method, bool aligned, const Function& function) {
    const auto with_aligned = [&](auto scheme, auto granularity) {
        if (aligned) {
            function(scheme, granularity, Constant<true>{});
        } else {
            function(scheme, granularity, Constant<false>{});
        }
    };
    const auto with_granularity = [&](auto scheme) {
        switch (method.granularity) {
            case Granularity::kTensor:
                return with_aligned(scheme, Constant<Granularity::kTensor>{});
            case Granularity::kRow:
                return with_aligned(scheme, Constant<Granularity::kRow>{});
            case Granularity::kColumn:
                return with_aligned(scheme, Constant<Granularity::kColumn>{});
        }
    };
    if (method.scheme == Scheme::kSymmetric) {
        with_granularity(Constant<Scheme::kSymmetric>{});
    } else {
        with_granularity(Constant<Scheme::kAsymmetric>{});
    }
}

// Throws std::invalid_argument unless there are as many parameters as groups. `zero_point` may be
// empty in the symmetric scheme.
template <class T, class Scale, class ZeroPoint>
void check_parameters(std::string_view function, Method method, DeviceMatrix<T> matrix, Scale scale,
                      ZeroPoint zero_point) {
    const std::size_t groups = group_count({matrix.rows(), matrix.cols(), method});
    require_size(Argument{function, "scale"}, scale.size(), groups);
    if (method.scheme == Scheme::kAsymmetric || !zero_point.empty())
        require_size(Argument{function, "zero_point"}, zero_point.size(), groups);
    require_apart(Argument{function, "scale"}, scale, "zero_point", zero_point);
}

template <class T>
void check_arguments(std::string_view function, Method method, DeviceMatrix<const T> in,
                     DeviceMatrix<std::int8_t> out, DeviceSpan<float> scale,
                     DeviceSpan<std::int32_t> zero_point) {
    require_shape(Argument{function, "out"}, out, in.rows(), in.cols());
    check_parameters(function, method, in, scale, zero_point);
    require_apart(Argument{function, "out"}, out, "in", in);
    require_apart(Argument{function, "scale"}, scale, "in", in);
    require_apart(Argument{function, "zero_point"}, zero_point, "in", in);
    require_apart(Argument{function, "out"}, out, "scale", scale);
    require_apart(Argument{function, "out"}, out, "zero_point", zero_point);
}

// If the group is the whole matrix, rows without gaps between them are one long row.
template <class T>
DeviceMatrix<T> as_one_row(DeviceMatrix<T> m) {
    if (m.leading_dimension() != m.cols()) return m;
    return {extent(m), 1, m.rows() * m.cols()};
}

// plain quantises rows, symmetrically.
std::string plain_constraint(const Problem& problem) {
    const bool can =
        problem.method.scheme == Scheme::kSymmetric && problem.method.granularity == Granularity::kRow;
    return can ? "" : "quantises symmetric per row, not " + name(problem.method);
}

template <class T>
void quantize_plainly(Method method, DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out,
                      DeviceSpan<float> scale, DeviceSpan<std::int32_t> zero_point, cudaStream_t stream) {
    const std::string reason = plain_constraint({in.rows(), in.cols(), method});
    course::require(reason.empty(), "quantize: this version ", reason);
    check_arguments("quantize", method, in, out, scale, zero_point);
    if (in.rows() == 0) return;
    if (!zero_point.empty())
        CUDA_CHECK(cudaMemsetAsync(zero_point.data(), 0, zero_point.size() * sizeof(std::int32_t), stream));
    launch_plain<T>(in, out, scale.data(), stream);
    CUDA_CHECK_LAUNCH();
}

template <class T>
void quantize_in_two_passes(Method method, DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out,
                            DeviceSpan<float> scale, DeviceSpan<std::int32_t> zero_point,
                            cudaStream_t stream) {
    check_arguments("quantize", method, in, out, scale, zero_point);
    find_parameters(method, in, scale, zero_point, stream);
    quantize_with<T>(method, in, scale, zero_point, out, stream);
}

std::string rows_that_fit(const Problem& problem) {
    if (problem.method.granularity != Granularity::kRow) return "quantises rows, not " + name(problem.method);
    if (problem.cols > kLongestRow)
        return "keeps up to " + std::to_string(kLongestRow) + " columns, not " + std::to_string(problem.cols);
    return "";
}

// Calls function(a constant) with the fewest threads, a power of two, whose registers hold a row of
// `cols`.
template <int kRowThreads = course::kWarpSize, class Function>
void with_row_threads(std::size_t cols, const Function& function) {
    if constexpr (kRowThreads < 1024) {
        if (cols > RowShare<float, kRowThreads, true>::kCapacity)
            return with_row_threads<2 * kRowThreads>(cols, function);
    }
    function(Constant<kRowThreads>{});
}

template <class T>
void quantize_in_registers(Method method, DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out,
                           DeviceSpan<float> scale, DeviceSpan<std::int32_t> zero_point,
                           cudaStream_t stream) {
    const std::string reason = rows_that_fit({in.rows(), in.cols(), method});
    course::require(reason.empty(), "quantize: this version ", reason);
    check_arguments("quantize", method, in, out, scale, zero_point);
    if (in.rows() == 0) return;
    const bool aligned = rows_are_aligned(in, 16) && rows_are_aligned(out, 8);
    with_row_threads(in.cols(), [&](auto threads) {
        with_constants(method, aligned, [&](auto scheme, auto granularity, auto is_aligned) {
            if constexpr (granularity.value == Granularity::kRow) {
                launch_row_in_registers<T, scheme.value, is_aligned.value, threads.value>(
                    in, out, scale.data(), zero_point.empty() ? nullptr : zero_point.data(), stream);
                CUDA_CHECK_LAUNCH();
            }
        });
    });
}

template <class T>
void quantize_as_fits(Method method, DeviceMatrix<const T> in, DeviceMatrix<std::int8_t> out,
                      DeviceSpan<float> scale, DeviceSpan<std::int32_t> zero_point, cudaStream_t stream) {
    const bool fits = rows_that_fit({in.rows(), in.cols(), method}).empty();
    const auto quantize = fits ? quantize_in_registers<T> : quantize_in_two_passes<T>;
    quantize(method, in, out, scale, zero_point, stream);
}

// Each input is read once, each output written once; a product and a rounding for each element.
template <class T>
course::Work work(const Problem& problem) {
    const double elements = static_cast<double>(problem.rows) * static_cast<double>(problem.cols);
    const double written =
        elements + static_cast<double>(group_count(problem)) * static_cast<double>(sizeof(float));
    return {.bytes = sizeof(T) * elements + written, .written = written, .flops = 2 * elements};
}

}  // namespace

// --- API -----------------------------------------------------------------------------------------

std::string name(Method method) {
    const std::string scheme = method.scheme == Scheme::kSymmetric ? "symmetric" : "asymmetric";
    return scheme + (method.granularity == Granularity::kTensor ? " per tensor"
                     : method.granularity == Granularity::kRow  ? " per row"
                                                                : " per column");
}

std::size_t group_count(const Problem& problem) {
    switch (problem.method.granularity) {
        case Granularity::kTensor:
            return 1;
        case Granularity::kRow:
            return problem.rows;
        case Granularity::kColumn:
            return problem.cols;
    }
    return 0;
}

template <class T>
void find_parameters(Method method, DeviceMatrix<const T> given, DeviceSpan<float> scale,
                     DeviceSpan<std::int32_t> zero_point, cudaStream_t stream) {
    check_parameters("find_parameters", method, given, scale, zero_point);
    require_apart("find_parameters: scale", scale, "in", given);
    require_apart("find_parameters: zero_point", zero_point, "in", given);
    if (scale.empty()) return;
    const DeviceMatrix<const T> in = method.granularity == Granularity::kTensor ? as_one_row(given) : given;
    CUDA_CHECK(cudaMemsetAsync(scale.data(), 0, scale.size() * sizeof(float), stream));
    if (!zero_point.empty())
        CUDA_CHECK(cudaMemsetAsync(zero_point.data(), 0, zero_point.size() * sizeof(std::int32_t), stream));

    const bool empty = in.rows() == 0 || in.cols() == 0;
    with_constants(method, rows_are_aligned(in, 16), [&](auto scheme, auto granularity, auto aligned) {
        if (empty) {
            // The range of an empty group is 0, as set above.
        } else if constexpr (granularity.value == Granularity::kColumn) {
            launch_find_column_ranges<T, scheme.value, aligned.value>(in, scale.data(), zero_point.data(),
                                                                      stream);
        } else {
            launch_find_row_ranges<T, scheme.value, granularity.value, aligned.value>(
                in, scale.data(), zero_point.data(), stream);
        }
        CUDA_CHECK_LAUNCH();
        launch_finish_parameters<scheme.value>(scale.data(), zero_point.data(), scale.size(), stream);
        CUDA_CHECK_LAUNCH();
    });
}

template <class T>
void quantize_with(Method method, DeviceMatrix<const T> in, DeviceSpan<const float> scale,
                   DeviceSpan<const std::int32_t> zero_point, DeviceMatrix<std::int8_t> out,
                   cudaStream_t stream) {
    require_shape("quantize_with: out", out, in.rows(), in.cols());
    check_parameters("quantize_with", method, in, scale, zero_point);
    require_apart("quantize_with: out", out, "in", in);
    require_apart("quantize_with: out", out, "scale", scale);
    require_apart("quantize_with: out", out, "zero_point", zero_point);
    if (in.rows() == 0 || in.cols() == 0) return;
    const bool aligned = rows_are_aligned(in, 16) && rows_are_aligned(out, 8);
    with_constants(method, aligned, [&](auto scheme, auto granularity, auto is_aligned) {
        launch_quantize_octets<T, scheme.value, granularity.value, is_aligned.value>(
            in, scale.data(), zero_point.data(), out, stream);
        CUDA_CHECK_LAUNCH();
    });
}

template <class T>
void dequantize(Method method, DeviceMatrix<const std::int8_t> in, DeviceSpan<const float> scale,
                DeviceSpan<const std::int32_t> zero_point, DeviceMatrix<T> out, cudaStream_t stream) {
    require_shape("dequantize: out", out, in.rows(), in.cols());
    check_parameters("dequantize", method, in, scale, zero_point);
    require_apart("dequantize: out", out, "in", in);
    require_apart("dequantize: out", out, "scale", scale);
    require_apart("dequantize: out", out, "zero_point", zero_point);
    if (in.rows() == 0 || in.cols() == 0) return;
    const bool aligned = rows_are_aligned(in, 8) && rows_are_aligned(out, 16);
    with_constants(method, aligned, [&](auto scheme, auto granularity, auto is_aligned) {
        launch_dequantize_octets<T, scheme.value, granularity.value, is_aligned.value>(
            in, scale.data(), zero_point.data(), out, stream);
        CUDA_CHECK_LAUNCH();
    });
}

template <class T>
void quantize_rows_of_host(std::size_t rows, std::size_t cols, std::span<const T> in,
                           std::span<std::int8_t> out, std::span<float> scale) {
    require_size("quantize_rows_of_host: in", in.size(), rows * cols);
    require_size("quantize_rows_of_host: out", out.size(), rows * cols);
    require_size("quantize_rows_of_host: scale", scale.size(), rows);
    const Method method{Scheme::kSymmetric, Granularity::kRow};
    {
        course::DeviceBuffer<T> x(in);
        course::DeviceBuffer<float> s(rows);
        CUDA_CHECK(cudaMemset(s.data(), 0, s.bytes()));
        find_parameters<T>(method, x.matrix(rows, cols), s.span(), {}, nullptr);
        s.copy_to(scale);
    }
    course::DeviceBuffer<T> x(in);
    course::DeviceBuffer<float> s{std::span<const float>(scale)};
    course::DeviceBuffer<std::int8_t> q(rows * cols);
    CUDA_CHECK(cudaMemset(q.data(), 0, q.bytes()));
    quantize_with<T>(method, x.matrix(rows, cols), s.span(), {}, q.matrix(rows, cols), nullptr);
    q.copy_to(out);
}

template <class T>
std::span<const Version<T>> versions() {
    static const std::array<Version<T>, 4> list = {{
        {"plain", "a block per row, then a thread per value", quantize_plainly<T>, work<T>, plain_constraint},
        {"two_passes", "the range first, then quantise", quantize_in_two_passes<T>, work<T>},
        {"row_in_registers", "a row stays in registers between the two", quantize_in_registers<T>, work<T>,
         rows_that_fit},
        {"auto", "registers where rows fit", quantize_as_fits<T>, work<T>},
    }};
    return list;
}

#define DAY30_INSTANTIATE(T)                                                                                 \
    template void find_parameters<T>(Method, DeviceMatrix<const T>, DeviceSpan<float>,                       \
                                     DeviceSpan<std::int32_t>, cudaStream_t);                                \
    template void quantize_with<T>(Method, DeviceMatrix<const T>, DeviceSpan<const float>,                   \
                                   DeviceSpan<const std::int32_t>, DeviceMatrix<std::int8_t>, cudaStream_t); \
    template void dequantize<T>(Method, DeviceMatrix<const std::int8_t>, DeviceSpan<const float>,            \
                                DeviceSpan<const std::int32_t>, DeviceMatrix<T>, cudaStream_t);              \
    template void quantize_rows_of_host<T>(std::size_t, std::size_t, std::span<const T>,                     \
                                           std::span<std::int8_t>, std::span<float>);                        \
    template std::span<const Version<T>> versions<T>();
DAY30_INSTANTIATE(float)
DAY30_INSTANTIATE(__half)
#undef DAY30_INSTANTIATE

}  // namespace day30
