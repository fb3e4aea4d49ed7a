// The reference of day 29: one row at a time, in double, with a bound of the error. The README
// derives the bound.
#include <algorithm>
#include <cmath>
#include <limits>

#include "decoding_attention.hpp"

namespace day29 {
namespace {

double to_double(__half x) {
    return static_cast<double>(__half2float(x));
}
double to_double(__nv_bfloat16 x) {
    return static_cast<double>(__bfloat162float(x));
}

template <class T>
constexpr double kRounding = 0x1p-11;  // of a result
template <>
constexpr double kRounding<__nv_bfloat16> = 0x1p-8;
template <class T>
constexpr double kSmallest = 0x1p-25;  // half the spacing of the smallest numbers
template <>
constexpr double kSmallest<__nv_bfloat16> = 0x1p-134;

// The error of a sum relative to the sum of its terms' magnitudes. Roundings are independent; a
// tensor core cuts sums off, always towards 0, so that these errors add up: once for 16 terms.
double lost_by_sum(std::size_t terms, const Precision& precision) {
    const auto n = static_cast<double>(terms);
    return precision.tensor_cores ? (std::sqrt(n) + n / 16) * 0x1p-23 : std::sqrt(n) * 0x1p-24;
}

}  // namespace

template <class T>
Precision precision(const Version<T>& version) {
    if (version.name == "row_per_block" || version.name == "split_keys") return {};
    return {.weight = kRounding<T>, .smallest_weight = kSmallest<T>, .tensor_cores = true};
}

template <class T>
ReferenceRow reference_row(std::span<const T> q, std::span<const T> k, std::span<const T> v,
                           std::size_t visible, double scale, const Precision& precision) {
    constexpr double u = 0x1p-24;
    const std::size_t dim = q.size();
    ReferenceRow row{std::vector<double>(dim), std::vector<double>(dim, kSmallest<T>)};
    if (visible == 0) return row;

    std::vector<double> p(visible);
    std::vector<double> error(visible);  // of a weight, relative
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
        error[j] = std::isinf(p[j]) ? 0 : scale * magnitude * (u + lost_by_sum(dim, precision));
        max = std::isnan(p[j]) ? p[j] : std::max(max, p[j]);
    }
    if (max == -std::numeric_limits<double>::infinity()) return row;
    // Rescaling: at every step of a running maximum, and where parts become one.
    const double of_chain = 6 * u * std::sqrt(static_cast<double>(2 + visible));
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
        2 * (std::sqrt(static_cast<double>(visible)) + 2) * u + lost_by_sum(visible, precision);
    for (std::size_t c = 0; c < dim; ++c) {
        double magnitude = 0;
        double squares = 0;
        double largest = 0;
        for (std::size_t j = 0; j < visible; ++j) {
            const double value = to_double(v[j * dim + c]);
            const double term = p[j] / sum * value;
            row.value[c] += term;
            magnitude += std::abs(term);
            squares += term * term;
            row.bound[c] += std::abs(term) * (error[j] + mean_error);
            largest += std::abs(value);
        }
        // Roundings of different weights are independent: eight times the root of the sum of
        // squares is practically never exceeded.
        row.bound[c] += std::min(magnitude, 8 * std::sqrt(squares)) * precision.weight + of_sums * magnitude +
                        precision.smallest_weight * largest / sum + kRounding<T> * std::abs(row.value[c]);
    }
    return row;
}

#define DAY29_INSTANTIATE(T)                                                                        \
    template Precision precision(const Version<T>&);                                                \
    template ReferenceRow reference_row(std::span<const T>, std::span<const T>, std::span<const T>, \
                                        std::size_t, double, const Precision&);
DAY29_INSTANTIATE(__half)
DAY29_INSTANTIATE(__nv_bfloat16)
#undef DAY29_INSTANTIATE

}  // namespace day29
