#include "attention_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/check/require.hpp"

namespace day25 {
namespace {

constexpr double kUnit = 0x1p-24;

// The error of a sum of so many terms, in roundings.
double grown(std::size_t terms, course::Growth growth) {
    const auto n = static_cast<double>(terms);
    return growth == course::Growth::kLinear ? n : std::min(n, 4 * std::sqrt(n));
}

template <class DoRow>
void for_each_row(std::size_t rows, DoRow do_row) {
#pragma omp parallel for schedule(dynamic)
    for (std::ptrdiff_t row = 0; row < static_cast<std::ptrdiff_t>(rows); ++row)
        do_row(static_cast<std::size_t>(row));
}

Bounded transposed(const Bounded& a) {
    Bounded result(a.cols, a.rows, a.growth);
    for (std::size_t i = 0; i < a.rows; ++i) {
        for (std::size_t j = 0; j < a.cols; ++j) {
            result.value[j * a.rows + i] = a.value[i * a.cols + j];
            result.error[j * a.rows + i] = a.error[i * a.cols + j];
        }
    }
    return result;
}

}  // namespace

Bounded::Bounded(std::size_t row_count, std::size_t col_count, course::Growth how)
    : rows(row_count), cols(col_count), value(rows * cols), error(rows * cols), growth(how) {}

Bounded::Bounded(std::size_t row_count, std::size_t col_count, std::span<const float> values,
                 course::Growth how)
    : rows(row_count),
      cols(col_count),
      value(values.begin(), values.end()),
      error(values.size()),
      growth(how) {
    course::require(values.size() == rows * cols, "day25: Bounded: ", values.size(), " values; expected ",
                    rows, " x ", cols);
}

Bounded Bounded::piece(std::size_t row, std::size_t row_count, std::size_t col, std::size_t col_count) const {
    Bounded result(row_count, col_count, growth);
    for (std::size_t i = 0; i < row_count; ++i) {
        const auto from = static_cast<std::ptrdiff_t>((row + i) * cols + col);
        const auto to = static_cast<std::ptrdiff_t>(i * col_count);
        std::copy_n(value.begin() + from, col_count, result.value.begin() + to);
        std::copy_n(error.begin() + from, col_count, result.error.begin() + to);
    }
    return result;
}

void Bounded::put(std::size_t row, std::size_t col, const Bounded& piece) {
    for (std::size_t i = 0; i < piece.rows; ++i) {
        const auto from = static_cast<std::ptrdiff_t>(i * piece.cols);
        const auto to = static_cast<std::ptrdiff_t>((row + i) * cols + col);
        std::copy_n(piece.value.begin() + from, piece.cols, value.begin() + to);
        std::copy_n(piece.error.begin() + from, piece.cols, error.begin() + to);
    }
}

Bounded multiply(const Bounded& a, const Bounded& b, bool transpose_b, double alpha) {
    if (transpose_b) return multiply(a, transposed(b), false, alpha);
    course::require(a.cols == b.rows, "day25: reference: a is ", a.rows, " x ", a.cols, " and b ", b.rows,
                    " x ", b.cols, "; expected as many columns as rows");
    course::require(a.growth == b.growth,
                    "day25: reference: errors of a and b grow differently; expected the same growth");
    Bounded c(a.rows, b.cols, a.growth);
    const bool independent = a.growth == course::Growth::kSquareRoot;
    const double rounding = (grown(a.cols, a.growth) + 10) * kUnit;
    const std::size_t cols = b.cols;
    for_each_row(a.rows, [&](std::size_t i) {
        double* const value = c.value.data() + i * c.cols;
        double* const error = c.error.data() + i * c.cols;
        std::vector<double> squares(independent ? c.cols : 0);  // of the errors that those of a and b cause
        for (std::size_t k = 0; k < a.cols; ++k) {
            const double x = alpha * a.value[i * a.cols + k];
            const double x_size = std::abs(x);
            const double x_error = std::abs(alpha) * a.error[i * a.cols + k];
            const double* const y = b.value.data() + k * b.cols;
            const double* const y_error = b.error.data() + k * b.cols;
            if (independent) {
                double* const square = squares.data();
#pragma omp simd
                for (std::size_t j = 0; j < cols; ++j) {
                    value[j] += x * y[j];
                    error[j] += rounding * x_size * std::abs(y[j]);
                    square[j] += x_size * x_size * y_error[j] * y_error[j] +
                                 x_error * x_error * (y[j] * y[j] + y_error[j] * y_error[j]);
                }
            } else {
#pragma omp simd
                for (std::size_t j = 0; j < cols; ++j) {
                    value[j] += x * y[j];
                    error[j] +=
                        (x_size + x_error) * y_error[j] + (x_error + rounding * x_size) * std::abs(y[j]);
                }
            }
        }
        for (std::size_t j = 0; j < squares.size(); ++j)
            error[j] = std::hypot(error[j], std::sqrt(squares[j]));
    });
    return c;
}

Bounded add_to_rows(const Bounded& a, const Bounded& row) {
    course::require(row.rows == 1 && row.cols == a.cols, "day25: reference: row is ", row.rows, " x ",
                    row.cols, "; expected 1 x ", a.cols);
    Bounded result = a;
    for (std::size_t i = 0; i < a.value.size(); ++i) {
        result.value[i] += row.value[i % a.cols];
        // The sum may begin with the row. Then every addition rounds it again, but by less than the
        // bound of the whole sum allows.
        result.error[i] +=
            row.error[i % a.cols] + kUnit * (std::abs(result.value[i]) + std::abs(row.value[i % a.cols]));
    }
    return result;
}

Bounded tanh_of(const Bounded& a) {
    Bounded result = a;
    for (std::size_t i = 0; i < a.value.size(); ++i) {
        result.value[i] = std::tanh(a.value[i]);
        result.error[i] = a.error[i] + 4 * kUnit * std::abs(result.value[i]);
    }
    return result;
}

Bounded masked_softmax(const Bounded& scores, const HostMask& mask) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Bounded result(scores.rows, scores.cols, scores.growth);
    // For any number of threads per row and any order.
    const double chain = grown(scores.cols, scores.growth);
    const bool independent = scores.growth == course::Growth::kSquareRoot;
    for_each_row(scores.rows, [&](std::size_t i) {
        const double* const x = scores.value.data() + i * scores.cols;
        const double* const x_error = scores.error.data() + i * scores.cols;
        const auto sees = [&](std::size_t j) {
            return (!mask.causal || j <= i) && (mask.padding.empty() || mask.padding[j] == 0);
        };
        double max = -kInfinity;
        for (std::size_t j = 0; j < scores.cols; ++j)
            if (sees(j)) max = std::fmax(max, x[j]);
        // The error of a weight's logarithm: that of the score, and that of the exponent, which
        // grows with its distance from the maximum. Twice, because the weight may have been
        // relative to another maximum first.
        const auto of = [&](std::size_t j) { return x_error[j] + kUnit * 2 * (2.3 * (max - x[j]) + 4); };
        double sum = 0;
        double sum_with_errors = 0;
        double squares = 0;  // of the errors that those of the scores cause in the sum
        for (std::size_t j = 0; j < scores.cols; ++j) {
            if (!sees(j)) continue;
            const double weight = std::exp(x[j] - max);
            const double with_error = std::exp(x[j] - max + of(j));
            sum += weight;
            sum_with_errors += with_error;
            squares += (with_error - weight) * (with_error - weight);
        }
        if (sum == 0) return;
        const double of_sum =
            (independent ? std::sqrt(squares) / sum : std::log(sum_with_errors / sum)) + kUnit * (chain + 4);
        for (std::size_t j = 0; j < scores.cols; ++j) {
            if (!sees(j)) continue;
            const double p = std::exp(x[j] - max) / sum;
            result.value[i * scores.cols + j] = p;
            // Floats below 2^-126 are subnormal or 0.
            result.error[i * scores.cols + j] =
                std::max(std::exp(x[j] - max + of(j) + of_sum) / sum - p, 0.0) + 0x1p-126;
        }
    });
    return result;
}

Bounded attention(const Bounded& q, const Bounded& k, const Bounded& v, double scale, const HostMask& mask) {
    return multiply(masked_softmax(multiply(q, k, true, scale), mask), v);
}

Bounded score_reference(Scoring scoring, const ScoreShape& shape, std::span<const float> hidden,
                        std::span<const float> states, std::span<const float> weight,
                        std::span<const float> v, course::Growth growth) {
    const Bounded h(1, shape.hidden, hidden, growth);
    const Bounded s(shape.states, shape.width, states, growth);
    const Bounded w(shape.weight_rows(scoring), shape.weight_cols(scoring), weight, growth);
    if (scoring == Scoring::kDot) return multiply(h, s, true);
    // The other order, (h W) s, has the same bound: (width + hidden) u |h| |W| |s|.
    if (scoring == Scoring::kLuong) return multiply(h, multiply(s, w, true), true);
    // The formula as it stands. The split version, with a sum for each half, has no larger error.
    Bounded both(shape.states, shape.hidden + shape.width, growth);
    both.put(0, shape.hidden, s);
    for (std::size_t j = 0; j < shape.states; ++j)
        both.put(j, 0, h);
    return multiply(Bounded(1, shape.units, v, growth), tanh_of(multiply(both, w, true)), true);
}

Bounded self_attention_reference(const AttentionShape& shape, const Bounded& q, const Bounded& k,
                                 const Bounded& v, double scale, bool causal,
                                 std::span<const std::uint8_t> padding) {
    const auto [batch, heads, queries, keys, width, value_width] = shape;
    course::require(padding.empty() || padding.size() == batch * keys, "day25: reference: padding has ",
                    padding.size(), " elements; expected none or batch x keys = ", batch * keys);
    Bounded out(batch * queries, heads * value_width, q.growth);
    for (std::size_t b = 0; b < batch; ++b) {
        const HostMask mask{causal, padding.empty() ? padding : padding.subspan(b * keys, keys)};
        for (std::size_t h = 0; h < heads; ++h) {
            out.put(b * queries, h * value_width,
                    attention(q.piece(b * queries, queries, h * width, width),
                              k.piece(b * keys, keys, h * width, width),
                              v.piece(b * keys, keys, h * value_width, value_width), scale, mask));
        }
    }
    return out;
}

Bounded self_attention_reference(const AttentionShape& shape, std::span<const float> q,
                                 std::span<const float> k, std::span<const float> v, float scale, bool causal,
                                 std::span<const std::uint8_t> padding, course::Growth growth) {
    const auto [batch, heads, queries, keys, width, value_width] = shape;
    return self_attention_reference(shape, Bounded(batch * queries, heads * width, q, growth),
                                    Bounded(batch * keys, heads * width, k, growth),
                                    Bounded(batch * keys, heads * value_width, v, growth),
                                    static_cast<double>(scale), causal, padding);
}

course::VerifyResult verify(std::span<const float> got, const Bounded& expected) {
    std::vector<double> magnitude(expected.error);
    for (double& m : magnitude)
        m /= course::FloatTraits<float>::kEpsilon;
    return course::verify(got, expected.value, {.terms = 1, .factor = 1}, magnitude, expected.cols);
}

// --- The layer -----------------------------------------------------------------------------------

AttentionLayerOnCpu::AttentionLayerOnCpu(const AttentionConfig& config, std::uint64_t seed)
    : config_(config) {
    check_config(config);
    const std::size_t width = config.width;
    std::uint64_t number = 0;
    const auto draw = [&](std::size_t outputs) {
        std::vector<float> weight(outputs * width);
        for (float& w : weight)
            w = xavier_weight(config.initial, seed, number++, xavier_scale(config.initial, width, outputs));
        return weight;
    };
    weights_.in_weight = draw(3 * width);
    weights_.out_weight = draw(width);
    if (config.bias) {
        weights_.in_bias.resize(3 * width);
        weights_.out_bias.resize(width);
    }
}

void AttentionLayerOnCpu::set_weights(const AttentionWeights& weights) {
    check_weights(config_, weights);
    weights_ = weights;
}

Bounded AttentionLayerOnCpu::forward(std::span<const float> query, std::span<const float> key,
                                     std::span<const float> value, const TokenCounts& counts, bool causal,
                                     std::span<const std::uint8_t> padding, course::Growth growth) const {
    const auto [batch, queries, keys] = counts;
    const std::size_t width = config_.width;
    const auto project = [&](const Bounded& in, const std::vector<float>& weight,
                             const std::vector<float>& bias, std::size_t first) {
        const std::span<const float> rows = std::span(weight).subspan(first * width, width * width);
        const Bounded out = multiply(in, Bounded(width, width, rows, growth), true);
        return bias.empty()
                   ? out
                   : add_to_rows(out, Bounded(1, width, std::span(bias).subspan(first, width), growth));
    };
    const Bounded q =
        project(Bounded(batch * queries, width, query, growth), weights_.in_weight, weights_.in_bias, 0);
    const Bounded k =
        project(Bounded(batch * keys, width, key, growth), weights_.in_weight, weights_.in_bias, width);
    const Bounded v =
        project(Bounded(batch * keys, width, value, growth), weights_.in_weight, weights_.in_bias, 2 * width);

    const std::size_t head = width / config_.heads;
    const Bounded heads = self_attention_reference({batch, config_.heads, queries, keys, head, head}, q, k, v,
                                                   1 / std::sqrt(static_cast<double>(head)), causal, padding);
    return project(heads, weights_.out_weight, weights_.out_bias, 0);
}

}  // namespace day25
