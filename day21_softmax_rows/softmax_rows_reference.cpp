#include <algorithm>
#include <cmath>
#include <limits>

#include "common/check/require.hpp"
#include "softmax_rows.hpp"

namespace day21 {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void require_lengths(const Problem& problem, std::size_t in, std::size_t out, const char* function) {
    course::require(in == problem.rows * problem.cols && out == in, function, ": in and out have ", in,
                    " and ", out, " elements; expected ", course::shape_text(problem.rows, problem.cols));
}

// A value beyond the range of a float is infinite.
double within_float(double value) {
    return std::abs(value) > std::numeric_limits<float>::max() ? std::copysign(kInfinity, value) : value;
}

// The maximum of the numbers; a NaN makes the sum NaN.
double maximum(std::span<const float> row) {
    double max = -kInfinity;
    for (const float x : row)
        max = std::fmax(max, static_cast<double>(x));
    return max;
}

template <class DoRow>
void for_each_row(std::size_t rows, DoRow do_row) {
    const auto count = static_cast<std::ptrdiff_t>(rows);
#pragma omp parallel for if (count > 64)
    for (std::ptrdiff_t row = 0; row < count; ++row)
        do_row(static_cast<std::size_t>(row));
}

}  // namespace

void softmax_on_cpu(const Problem& problem, std::span<const float> in, std::span<double> out) {
    require_lengths(problem, in.size(), out.size(), "softmax_on_cpu");
    for_each_row(problem.rows, [&](std::size_t row) {
        const std::span x = in.subspan(row * problem.cols, problem.cols);
        const std::span y = out.subspan(row * problem.cols, problem.cols);
        const double max = maximum(x);
        double sum = 0;
        for (const float value : x)
            sum += std::exp(static_cast<double>(value) - max);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double below = static_cast<double>(x[i]) - max;
            y[i] = problem.output == Output::kSoftmax ? std::exp(below) / sum
                                                      : within_float(below - std::log(sum));
        }
    });
}

void error_magnitudes(const Problem& problem, std::span<const float> in, std::span<const double> expected,
                      std::span<double> magnitude) {
    require_lengths(problem, in.size(), expected.size(), "error_magnitudes");
    require_lengths(problem, in.size(), magnitude.size(), "error_magnitudes");
    // Each of these steps counts six roundings below, an addition one: rows_in_shared adds up to
    // 191 numbers one after the other, no other version more than 96 up to 2^24 columns.
    const double chain = static_cast<double>(std::min<std::size_t>(problem.cols, 96));
    for_each_row(problem.rows, [&](std::size_t row) {
        const std::size_t begin = row * problem.cols;
        const std::span x = in.subspan(begin, problem.cols);
        const double max = maximum(x);
        double sum = 0;
        double weighted = 0;  // sum of exp(x - max) |x - max|
        for (const float value : x) {
            const double below = static_cast<double>(value) - max;
            const double e = std::exp(below);
            sum += e;
            if (e > 0) weighted += e * -below;
        }
        // Relative error of the sum, and then of each value, in units of 2 epsilon = 4 u.
        const double of_sum = 0.6 * weighted / sum + 1.5 * chain + 2;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double below = max - static_cast<double>(x[i]);
            const double y = std::abs(expected[begin + i]);
            if (!std::isfinite(y)) {
                magnitude[begin + i] = 0;
            } else if (problem.output == Output::kSoftmax) {
                magnitude[begin + i] = y == 0 ? 0 : y * (0.6 * below + of_sum + 3.25);
            } else {
                magnitude[begin + i] = 0.25 * (below + y) + 0.5 * std::log(sum) + of_sum;
            }
        }
    });
}

}  // namespace day21
