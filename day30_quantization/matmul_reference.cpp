#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "arguments.hpp"
#include "int8_matmul.hpp"
#include "llm_int8.hpp"
#include "quantization.hpp"

namespace day30 {
namespace {

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

// What a half makes of it.
double within_half(double value) {
    return std::abs(value) >= kLargestHalf + 16 ? std::copysign(kInfinity, value) : value;
}

}  // namespace

void int8_matmul_on_cpu(const MatmulShape& shape, std::span<const std::int8_t> a,
                        std::span<const std::int8_t> w, std::span<std::int32_t> c) {
    const auto [m, n, k] = shape;
    require_size("int8_matmul_on_cpu: a", a.size(), m * k);
    require_size("int8_matmul_on_cpu: w", w.size(), n * k);
    require_size("int8_matmul_on_cpu: c", c.size(), m * n);
    for_each_row(m, [&](std::size_t row) {
        for (std::size_t column = 0; column < n; ++column) {
            const std::int8_t* const x = a.data() + row * k;
            const std::int8_t* const y = w.data() + column * k;
            std::int32_t sum = 0;
            for (std::size_t i = 0; i < k; ++i)
                sum += x[i] * y[i];
            c[row * n + column] = sum;
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

    const auto quantize = [&](std::size_t rows, std::span<const __half> values, std::vector<float>& scale) {
        const Problem problem{rows, inputs, {}};
        std::vector<std::int8_t> q(values.size());
        scale.resize(rows);
        find_parameters_on_cpu(problem, values, std::span<float>(scale), {});
        quantize_on_cpu(problem, values, std::span<const float>(scale), {}, std::span<std::int8_t>(q));
        return q;
    };
    std::vector<float> x_scale;
    std::vector<float> w_scale;
    const std::vector<std::int8_t> x8 = quantize(tokens, kept, x_scale);
    const std::vector<std::int8_t> w8 = quantize(outputs, layer.w, w_scale);
    std::vector<std::int32_t> products(y.size());
    int8_matmul_on_cpu({tokens, outputs, inputs}, x8, w8, products);

    // Of a float product: its conversion and two scales round; of the outlier part each addition does, by up to a whole unit where
    // tensor cores cut off. The result is rounded to half once.
    constexpr double kFloatUnit = 0x1p-23;
    constexpr double kHalfUnit = 0x1p-11;
    constexpr double kSmallestHalf = 0x1p-25;
    for_each_row(tokens, [&](std::size_t token) {
        for (std::size_t output = 0; output < outputs; ++output) {
            const std::size_t at = token * outputs + output;
            const double of_int8 = static_cast<double>(products[at]) * static_cast<double>(x_scale[token]) *
                                   static_cast<double>(w_scale[output]);
            double sum = of_int8;
            double magnitude = std::abs(of_int8);
            for (const std::uint32_t column : outliers) {
                const double product =
                    static_cast<double>(static_cast<float>(layer.x[token * inputs + column])) *
                    static_cast<double>(static_cast<float>(layer.w[output * inputs + column]));
                sum += product;
                magnitude += std::abs(product);
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

RelativeError relative_error(std::span<const double> exact, std::span<const double> approximate) {
    require_size("relative_error: approximate", approximate.size(), exact.size());
    double squares = 0;
    double of_error = 0;
    double largest = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        const double error = approximate[i] - exact[i];
        squares += exact[i] * exact[i];
        of_error += error * error;
        largest = std::max(largest, std::abs(error));
    }
    const double size = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(exact.size(), 1)));
    return {std::sqrt(of_error / std::max(squares, 1e-300)), largest / std::max(size, 1e-300)};
}

}  // namespace day30
