// The reference for attention: one row at a time, in double, with a bound of the error. The README
// of day 26 derives the bound.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/bench/attention.hpp"

namespace course::attention {
namespace {

double to_double(float x) {
    return static_cast<double>(x);
}
double to_double(__half x) {
    return static_cast<double>(__half2float(x));
}
double to_double(__nv_bfloat16 x) {
    return static_cast<double>(__bfloat162float(x));
}

double grown(std::size_t terms, Growth growth) {
    const auto n = static_cast<double>(terms);
    return growth == Growth::kLinear ? n : std::sqrt(n);
}

// The error of a sum relative to the sum of its terms' magnitudes. Where tensor cores truncate,
// each term loses up to `sum` of the largest number that is added at the same time, and so does the
// partial sum at each truncation. Truncation errors of terms of either sign are independent; those
// of one partial sum add up.
double lost_by_sum(std::size_t terms, const Precision& precision) {
    double roundings = grown(terms, precision.growth);
    if (precision.between_cuts > 0)
        roundings += std::ceil(static_cast<double>(terms) / precision.between_cuts);
    return roundings * precision.sum;
}

}  // namespace

template <>
Precision tensor_core_precision<__half>() {
    return {.sum = 0x1p-23,
            .between_cuts = 16,
            .product = 0,
            .weight = 0x1p-11,
            .smallest_weight = 0x1p-25,
            .result = 0x1p-11,
            .smallest_result = 0x1p-25};
}

template <>
Precision tensor_core_precision<__nv_bfloat16>() {
    return {.sum = 0x1p-23,
            .between_cuts = 16,
            .product = 0,
            .weight = 0x1p-8,
            .smallest_weight = 0x1p-134,
            .result = 0x1p-8,
            .smallest_result = 0x1p-134};
}

template <class T>
ReferenceRow reference_row(std::span<const T> q, std::span<const T> k, std::span<const T> v,
                           std::size_t visible, double scale, const Precision& precision) {
    const std::size_t dim = q.size();
    ReferenceRow row{std::vector<double>(dim), std::vector<double>(dim, precision.smallest_result)};
    if (visible == 0) return row;

    // The scores, and the relative errors of p that the errors of the scores cause.
    const double of_dot = precision.product + lost_by_sum(dim, precision);
    std::vector<double> p(visible);
    std::vector<double> error(visible);
    double max = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < visible; ++j) {
        double sum = 0;
        double magnitude = 0;
        for (std::size_t c = 0; c < dim; ++c) {
            const double term = to_double(q[c]) * to_double(k[j * dim + c]);
            sum += term;
            magnitude += std::abs(term);
        }
        p[j] = scale * sum;
        error[j] = std::isinf(p[j]) ? 0 : std::abs(scale) * magnitude * of_dot;
        max = std::isnan(p[j]) ? p[j] : std::max(max, p[j]);
    }
    if (max == -std::numeric_limits<double>::infinity()) return row;
    constexpr double u = 0x1p-24;
    const double of_chain = 6 * u * grown(1 + visible / 32, precision.growth);
    double sum = 0;
    double mean_error = 0;
    for (std::size_t j = 0; j < visible; ++j) {
        if (!std::isinf(p[j])) error[j] += 4 * u * std::abs(p[j] - max) + 4 * u + of_chain;
        p[j] = std::exp(p[j] - max);
        sum += p[j];
        mean_error += p[j] * error[j];
    }
    mean_error /= sum;

    const double of_sums =
        2 * (grown(visible, precision.growth) + 2) * u + precision.product + lost_by_sum(visible, precision);
    for (std::size_t c = 0; c < dim; ++c) {
        double value = 0;
        double magnitude = 0;
        double squares = 0;
        double bound = 0;
        double largest = 0;
        for (std::size_t j = 0; j < visible; ++j) {
            const double term = p[j] / sum * to_double(v[j * dim + c]);
            value += term;
            magnitude += std::abs(term);
            squares += term * term;
            bound += std::abs(term) * (error[j] + mean_error);
            largest += std::abs(to_double(v[j * dim + c]));
        }
        // The roundings of different p are independent, so eight times the root of the sum of
        // squares is practically never exceeded.
        const double of_weights =
            precision.growth == Growth::kLinear ? magnitude : std::min(magnitude, 8 * std::sqrt(squares));
        row.value[c] = value;
        row.bound[c] += bound + of_weights * precision.weight + of_sums * magnitude +
                        precision.smallest_weight * largest / sum + precision.result * std::abs(value);
    }
    return row;
}

template ReferenceRow reference_row(std::span<const float>, std::span<const float>, std::span<const float>,
                                    std::size_t, double, const Precision&);
template ReferenceRow reference_row(std::span<const __half>, std::span<const __half>, std::span<const __half>,
                                    std::size_t, double, const Precision&);
template ReferenceRow reference_row(std::span<const __nv_bfloat16>, std::span<const __nv_bfloat16>,
                                    std::span<const __nv_bfloat16>, std::size_t, double, const Precision&);

}  // namespace course::attention
