#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "common/check/matrix_arguments.hpp"
#include "llm_int8.hpp"

namespace day32 {
namespace {

using course::Argument;
using course::require_size;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestHalf = 65504;

template <class DoRow>
void for_each_row(std::size_t rows, const DoRow& do_row) {
    const auto count = static_cast<std::ptrdiff_t>(rows);
#pragma omp parallel for
    for (std::ptrdiff_t row = 0; row < count; ++row)
        do_row(static_cast<std::size_t>(row));
}

std::vector<float> to_float(std::span<const __half> values) {
    std::vector<float> result;
    result.reserve(values.size());
    for (const __half x : values)
        result.push_back(static_cast<float>(x));
    return result;
}

void require_layer(std::string_view function, const HostLayer& layer, std::size_t y) {
    const auto [tokens, outputs, inputs] = layer.shape;
    require_size(Argument{function, "x"}, layer.x.size(), tokens * inputs);
    require_size(Argument{function, "w"}, layer.w.size(), outputs * inputs);
    require_size(Argument{function, "y"}, y, tokens * outputs);
}

// The value after conversion to half, as far as overflow goes.
double within_half(double value) {
    return std::abs(value) >= kLargestHalf + 16 ? std::copysign(kInfinity, value) : value;
}

}  // namespace

void quantize_rows_on_cpu(std::size_t rows, std::size_t cols, std::span<const __half> in,
                          std::span<std::int8_t> out, std::span<float> scale) {
    require_size("quantize_rows_on_cpu: in", in.size(), rows * cols);
    require_size("quantize_rows_on_cpu: out", out.size(), rows * cols);
    require_size("quantize_rows_on_cpu: scale", scale.size(), rows);
    for_each_row(rows, [&](std::size_t row) {
        const std::span<const __half> x = in.subspan(row * cols, cols);
        float largest = 0;
        bool finite = true;
        for (const __half value : x) {
            const float magnitude = std::abs(static_cast<float>(value));
            finite = finite && std::isfinite(magnitude);
            largest = std::max(largest, magnitude);
        }
        float s = largest / 127;
        if (s < FLT_MIN) s = 0;
        if (!finite) s = std::numeric_limits<float>::quiet_NaN();
        scale[row] = s;
        const double inverse = s > 0 ? static_cast<double>(1 / s) : 0;
        for (std::size_t col = 0; col < cols; ++col) {
            const double exact = s > 0 ? static_cast<double>(static_cast<float>(x[col])) * inverse : 0;
            out[row * cols + col] = static_cast<std::int8_t>(std::nearbyint(exact));
        }
    });
}

std::vector<std::uint32_t> outlier_columns_on_cpu(const HostLayer& layer) {
    const auto [tokens, outputs, inputs] = layer.shape;
    std::vector<std::uint32_t> columns;
    for (std::size_t column = 0; column < inputs; ++column) {
        for (std::size_t token = 0; token < tokens; ++token) {
            if (std::abs(static_cast<float>(layer.x[token * inputs + column])) < layer.threshold) continue;
            columns.push_back(static_cast<std::uint32_t>(column));
            break;
        }
    }
    return columns;
}

void llm_int8_on_cpu(const HostLayer& layer, std::span<const std::uint32_t> outliers, std::span<double> y,
                     std::span<double> allowed) {
    require_layer("llm_int8_on_cpu", layer, y.size());
    require_size("llm_int8_on_cpu: allowed", allowed.size(), y.size());
    const auto [tokens, outputs, inputs] = layer.shape;
    std::vector<__half> kept(layer.x.begin(), layer.x.end());
    for (const std::uint32_t column : outliers)
        for (std::size_t token = 0; token < tokens; ++token)
            kept[token * inputs + column] = __half(0.0f);

    std::vector<std::int8_t> x8(tokens * inputs), w8(outputs * inputs);
    std::vector<float> x_scale(tokens), w_scale(outputs);
    quantize_rows_on_cpu(tokens, inputs, kept, x8, x_scale);
    quantize_rows_on_cpu(outputs, inputs, layer.w, w8, w_scale);

    // A float product rounds when it is converted and with each of its two scales; the outlier part
    // with each addition, by up to a whole unit where tensor cores truncate. The result is rounded
    // to half once.
    constexpr double kFloatUnit = 0x1p-23;
    constexpr double kHalfUnit = 0x1p-11;
    constexpr double kSmallestHalf = 0x1p-25;
    for_each_row(tokens, [&](std::size_t token) {
        for (std::size_t output = 0; output < outputs; ++output) {
            const std::size_t at = token * outputs + output;
            std::int32_t product = 0;
            for (std::size_t i = 0; i < inputs; ++i)
                product += x8[token * inputs + i] * w8[output * inputs + i];
            const double of_int8 = static_cast<double>(product) * static_cast<double>(x_scale[token]) *
                                   static_cast<double>(w_scale[output]);
            double sum = of_int8;
            double magnitude = std::abs(of_int8);
            for (const std::uint32_t column : outliers) {
                const double outlier =
                    static_cast<double>(static_cast<float>(layer.x[token * inputs + column])) *
                    static_cast<double>(static_cast<float>(layer.w[output * inputs + column]));
                sum += outlier;
                magnitude += std::abs(outlier);
            }
            y[at] = within_half(sum);
            const double in_float = kFloatUnit * (2 + static_cast<double>(outliers.size())) * magnitude;
            allowed[at] =
                std::isfinite(y[at]) ? in_float + kHalfUnit * (std::abs(sum) + in_float) + kSmallestHalf : 0;
        }
    });
}

void linear_on_cpu(const HostLayer& layer, std::span<double> y) {
    require_layer("linear_on_cpu", layer, y.size());
    const auto [tokens, outputs, inputs] = layer.shape;
    const std::vector<float> x = to_float(layer.x);
    const std::vector<float> w = to_float(layer.w);
    for_each_row(tokens, [&](std::size_t token) {
        for (std::size_t output = 0; output < outputs; ++output) {
            double sum = 0;
            for (std::size_t i = 0; i < inputs; ++i)
                sum +=
                    static_cast<double>(x[token * inputs + i]) * static_cast<double>(w[output * inputs + i]);
            y[token * outputs + output] = sum;
        }
    });
}

}  // namespace day32
