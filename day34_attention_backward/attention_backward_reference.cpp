// The reference: forward pass of a head, gradients of a row or a key, plain loops in double, with
// bounds of the error of each gradient.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention_backward.hpp"

namespace day34 {
namespace {

using course::Growth;
using course::attention::Precision;
using course::attention::visible_keys;

double to_double(float x) {
    return static_cast<double>(x);
}
double to_double(__half x) {
    return static_cast<double>(__half2float(x));
}
double to_double(__nv_bfloat16 x) {
    return static_cast<double>(__bfloat162float(x));
}

// A sum of products, and that of their magnitudes.
struct Sum {
    double value = 0;
    double magnitude = 0;

    void add(double term) {
        value += term;
        magnitude += std::abs(term);
    }
};

template <class T>
Sum dot(std::span<const T> a, std::size_t row_a, std::span<const T> b, std::size_t row_b, std::size_t dim) {
    Sum sum;
    for (std::size_t c = 0; c < dim; ++c)
        sum.add(to_double(a[row_a * dim + c]) * to_double(b[row_b * dim + c]));
    return sum;
}

double grown(double terms, Growth growth) {
    return growth == Growth::kLinear ? terms : std::sqrt(terms);
}

// The error of a sum of `terms` products, relative to the sum of their magnitudes.
double of_sum(std::size_t terms, const Precision& precision) {
    const auto n = static_cast<double>(terms);
    double roundings = grown(n, precision.growth);
    if (precision.growth == Growth::kSquareRoot && precision.between_cuts > 0)
        roundings += n / precision.between_cuts;
    return precision.product + roundings * precision.sum;
}

// One element of a gradient, a sum over j of factor[j] times an exact number. `error` is that of a
// factor before it is rounded to T.
struct Element {
    double value = 0;
    double magnitude = 0;
    double squares = 0;
    double bound = 0;
    double largest = 0;

    void add(double factor, double error, double number) {
        const double term = factor * number;
        value += term;
        magnitude += std::abs(term);
        squares += term * term;
        bound += error * std::abs(number);
        largest += std::abs(number);
    }

    // A factor has been rounded `roundings` times: P once; dS itself, and the P in it. These errors
    // are independent: eight times the root of the sum of squares is practically never exceeded.
    double total(std::size_t terms, int roundings, const Precision& precision) const {
        const double of_factors =
            precision.growth == Growth::kLinear ? magnitude : std::min(magnitude, 8 * std::sqrt(squares));
        return bound + roundings * precision.weight * of_factors + precision.smallest_weight * largest +
               (of_sum(terms, precision) + 2 * 0x1p-24) * (magnitude + bound) +
               precision.result * (std::abs(value) + bound) + precision.smallest_result;
    }
};

GradientRow row_of(const std::vector<Element>& elements, std::size_t terms, int roundings,
                   const Precision& precision) {
    GradientRow row;
    for (const Element& element : elements) {
        row.value.push_back(element.value);
        row.bound.push_back(element.total(terms, roundings, precision));
    }
    return row;
}

// P and dS of one row and key, and the errors that a version may have made.
struct Score {
    double p = 0;
    double p_error = 0;
    double ds = 0;
    double ds_error = 0;
};

template <class T>
Score score_of(const Head<T>& head, const Shape& shape, double scale, const Precision& precision,
               std::size_t row, std::size_t key) {
    constexpr double u = 0x1p-24;
    const std::size_t dim = shape.dim;
    const auto lse = static_cast<double>(head.lse[row]);
    if (key >= visible_keys(row, shape.length_q, shape.length_k, shape.causal)) return {};
    if (lse == -std::numeric_limits<double>::infinity()) return {};
    const Sum d = dot(head.d_out, row, head.out, row, dim);
    const Sum dp = dot(head.d_out, row, head.v, key, dim);
    const Sum score = dot(head.q, row, head.k, key, dim);
    // The error of the exponent is the relative error of p.
    const double exponent = scale * score.magnitude * of_sum(dim, precision) +
                            4 * u * (std::abs(scale * score.value) + std::abs(lse)) + 8 * u;
    const double difference = dp.magnitude * of_sum(dim, precision) +
                              d.magnitude * grown(static_cast<double>(dim), precision.growth) * u +
                              4 * u * (std::abs(dp.value) + std::abs(d.value));
    Score result;
    result.p = std::exp(scale * score.value - lse);
    result.p_error = result.p * std::expm1(exponent);
    result.ds = result.p * (dp.value - d.value);
    result.ds_error = (result.p + result.p_error) * difference +
                      (result.p_error + precision.smallest_weight) * std::abs(dp.value - d.value);
    return result;
}

}  // namespace

template <class T>
GradientRow query_gradient(const Head<T>& head, const Shape& shape, double scale, const Precision& precision,
                           std::size_t row) {
    std::vector<Element> dq(shape.dim);
    for (std::size_t key = 0; key < shape.length_k; ++key) {
        const Score s = score_of(head, shape, scale, precision, row, key);
        for (std::size_t c = 0; c < shape.dim; ++c)
            dq[c].add(scale * s.ds, scale * s.ds_error, to_double(head.k[key * shape.dim + c]));
    }
    return row_of(dq, shape.length_k, 2, precision);
}

template <class T>
KeyGradient key_gradient(const Head<T>& head, const Shape& shape, double scale, const Precision& precision,
                         std::size_t key) {
    std::vector<Element> dk(shape.dim);
    std::vector<Element> dv(shape.dim);
    for (std::size_t row = 0; row < shape.length_q; ++row) {
        const Score s = score_of(head, shape, scale, precision, row, key);
        for (std::size_t c = 0; c < shape.dim; ++c) {
            dk[c].add(scale * s.ds, scale * s.ds_error, to_double(head.q[row * shape.dim + c]));
            dv[c].add(s.p, s.p_error, to_double(head.d_out[row * shape.dim + c]));
        }
    }
    return {row_of(dk, shape.length_q, 2, precision), row_of(dv, shape.length_q, 1, precision)};
}

Forward forward_on_cpu(std::span<const double> q, std::span<const double> k, std::span<const double> v,
                       const Shape& shape, double scale) {
    const std::size_t dim = shape.dim;
    Forward result{std::vector<double>(shape.length_q * dim),
                   std::vector<double>(shape.length_q, -std::numeric_limits<double>::infinity())};
    const auto count = static_cast<std::ptrdiff_t>(shape.length_q);
#pragma omp parallel for
    for (std::ptrdiff_t number = 0; number < count; ++number) {
        const auto i = static_cast<std::size_t>(number);
        const std::size_t visible = visible_keys(i, shape.length_q, shape.length_k, shape.causal);
        if (visible == 0) continue;
        std::vector<double> score(visible);
        for (std::size_t j = 0; j < visible; ++j) {
            for (std::size_t c = 0; c < dim; ++c)
                score[j] += scale * q[i * dim + c] * k[j * dim + c];
        }
        const double max = *std::max_element(score.begin(), score.end());
        double sum = 0;
        for (const double s : score)
            sum += std::exp(s - max);
        result.lse[i] = max + std::log(sum);
        for (std::size_t j = 0; j < visible; ++j) {
            for (std::size_t c = 0; c < dim; ++c)
                result.out[i * dim + c] += std::exp(score[j] - result.lse[i]) * v[j * dim + c];
        }
    }
    return result;
}

#define DAY34_REFERENCE(T)                                                                      \
    template GradientRow query_gradient(const Head<T>&, const Shape&, double, const Precision&, \
                                        std::size_t);                                           \
    template KeyGradient key_gradient(const Head<T>&, const Shape&, double, const Precision&, std::size_t);
DAY34_REFERENCE(float)
DAY34_REFERENCE(__half)
DAY34_REFERENCE(__nv_bfloat16)
#undef DAY34_REFERENCE

}  // namespace day34
