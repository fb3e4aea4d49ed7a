// The reference: forward and backward pass of one head, plain loops in double, with bounds of the
// error of each gradient.
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

    // Roundings of the factors are independent: eight times the root of the sum of squares is
    // practically never exceeded.
    double total(std::size_t terms, const Precision& precision) const {
        const double of_factors =
            precision.growth == Growth::kLinear ? magnitude : std::min(magnitude, 8 * std::sqrt(squares));
        return bound + precision.weight * of_factors + precision.smallest_weight * largest +
               (of_sum(terms, precision) + 2 * 0x1p-24) * (magnitude + bound) +
               precision.result * (std::abs(value) + bound) + precision.smallest_result;
    }
};

}  // namespace

template <class T>
HeadGradient gradient_on_cpu(const Head<T>& head, const Shape& shape, double scale,
                             const Precision& precision) {
    const std::size_t rows = shape.length_q;
    const std::size_t keys = shape.length_k;
    const std::size_t dim = shape.dim;
    constexpr double u = 0x1p-24;
    std::vector<double> p(rows * keys), p_error(rows * keys), ds(rows * keys), ds_error(rows * keys);
    const auto count = static_cast<std::ptrdiff_t>(rows);
#pragma omp parallel for
    for (std::ptrdiff_t number = 0; number < count; ++number) {
        const auto i = static_cast<std::size_t>(number);
        const Sum d = dot(head.d_out, i, head.out, i, dim);
        const auto lse = static_cast<double>(head.lse[i]);
        if (lse == -std::numeric_limits<double>::infinity()) continue;
        for (std::size_t j = 0; j < visible_keys(i, rows, keys, shape.causal); ++j) {
            const Sum score = dot(head.q, i, head.k, j, dim);
            const Sum dp = dot(head.d_out, i, head.v, j, dim);
            const std::size_t at = i * keys + j;
            p[at] = std::exp(scale * score.value - lse);
            // The exponent's error is the relative error of p.
            const double exponent = scale * score.magnitude * of_sum(dim, precision) +
                                    4 * u * (std::abs(scale * score.value) + std::abs(lse)) + 8 * u;
            p_error[at] = p[at] * std::expm1(exponent);
            ds[at] = p[at] * (dp.value - d.value);
            const double difference = dp.magnitude * of_sum(dim, precision) +
                                      d.magnitude * grown(static_cast<double>(dim), precision.growth) * u +
                                      4 * u * (std::abs(dp.value) + std::abs(d.value));
            ds_error[at] = (p[at] + p_error[at]) * difference + p_error[at] * std::abs(dp.value - d.value);
        }
    }

    HeadGradient result{std::vector<double>(rows * dim), std::vector<double>(keys * dim),
                        std::vector<double>(keys * dim), std::vector<double>(rows * dim),
                        std::vector<double>(keys * dim), std::vector<double>(keys * dim)};
    const auto all = static_cast<std::ptrdiff_t>((rows + keys) * dim);
#pragma omp parallel for
    for (std::ptrdiff_t number = 0; number < all; ++number) {
        const auto at = static_cast<std::size_t>(number);
        if (at < rows * dim) {
            Element dq;
            for (std::size_t j = 0; j < keys; ++j)
                dq.add(scale * ds[at / dim * keys + j], scale * ds_error[at / dim * keys + j],
                       to_double(head.k[j * dim + at % dim]));
            result.dq[at] = dq.value;
            result.dq_bound[at] = dq.total(keys, precision);
        } else {
            const std::size_t in_keys = at - rows * dim;
            const std::size_t j = in_keys / dim;
            Element dk;
            Element dv;
            for (std::size_t i = 0; i < rows; ++i) {
                dk.add(scale * ds[i * keys + j], scale * ds_error[i * keys + j],
                       to_double(head.q[i * dim + in_keys % dim]));
                dv.add(p[i * keys + j], p_error[i * keys + j],
                       to_double(head.d_out[i * dim + in_keys % dim]));
            }
            result.dk[in_keys] = dk.value;
            result.dk_bound[in_keys] = dk.total(rows, precision);
            result.dv[in_keys] = dv.value;
            result.dv_bound[in_keys] = dv.total(rows, precision);
        }
    }
    return result;
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

template HeadGradient gradient_on_cpu(const Head<float>&, const Shape&, double, const Precision&);
template HeadGradient gradient_on_cpu(const Head<__half>&, const Shape&, double, const Precision&);
template HeadGradient gradient_on_cpu(const Head<__nv_bfloat16>&, const Shape&, double, const Precision&);

}  // namespace day34
