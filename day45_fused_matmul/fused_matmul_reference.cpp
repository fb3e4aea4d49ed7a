// The references of day 45: plain loops in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "common/check/matmul_reference.hpp"
#include "distance.hpp"
#include "fused_matmul.hpp"
#include "reduce.hpp"

namespace day45 {
namespace {

// |row|^2 of each row of a packed matrix.
std::vector<double> squared_norms(std::span<const float> matrix, std::size_t rows, std::size_t cols,
                                  std::size_t row_step, std::size_t col_step) {
    std::vector<double> norms(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t col = 0; col < cols; ++col) {
            const auto x = static_cast<double>(matrix[row * row_step + col * col_step]);
            norms[row] += x * x;
        }
    }
    return norms;
}

bool precedes(double a, double b, bool is_max) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
    return is_max ? a > b : a < b;
}

}  // namespace

DistancesOnCpu distances_on_cpu(Metric metric, std::size_t m, std::size_t n, std::size_t k,
                                std::span<const float> a, std::span<const float> b) {
    DistancesOnCpu result{std::vector<double>(m * n), std::vector<double>(m * n)};
    course::multiply_on_cpu(m, n, k, 1, a, b, 0, result.values, result.magnitudes);
    if (metric == Metric::kDot) return result;
    const std::vector<double> norms_a = squared_norms(a, m, k, k, 1);
    const std::vector<double> norms_b = squared_norms(b, n, k, 1, n);
#pragma omp parallel for
    for (std::ptrdiff_t signed_row = 0; signed_row < static_cast<std::ptrdiff_t>(m); ++signed_row) {
        const auto i = static_cast<std::size_t>(signed_row);
        for (std::size_t j = 0; j < n; ++j) {
            double& value = result.values[i * n + j];
            double& magnitude = result.magnitudes[i * n + j];
            if (metric == Metric::kCosine) {
                const double lengths = std::sqrt(norms_a[i]) * std::sqrt(norms_b[j]);
                value = lengths == 0 ? 1 : 1 - value / lengths;
                magnitude = lengths == 0 ? 1 : 1 + 2 * magnitude / lengths;
            } else if (metric == Metric::kSquaredL2) {
                const double squared = norms_a[i] + norms_b[j] - 2 * value;
                value = squared < 0 ? 0 : squared;
                magnitude = norms_a[i] + norms_b[j] + 2 * magnitude;
            } else {
                value = 0;
                for (std::size_t p = 0; p < k; ++p) {
                    const double difference =
                        static_cast<double>(a[i * k + p]) - static_cast<double>(b[p * n + j]);
                    value += difference * difference;
                }
                magnitude = 3 * value;  // of each term, the difference is rounded and then its square
            }
        }
    }
    return result;
}

void multiply_on_cpu(const Shape& shape, float alpha, std::span<const float> a, std::span<const float> b,
                     float beta, std::span<double> product, std::span<double> magnitude) {
    for (std::size_t i = 0; i < shape.count; ++i) {
        course::multiply_on_cpu(shape.m, shape.n, shape.k, alpha,
                                a.subspan(i * shape.m * shape.k, shape.m * shape.k),
                                b.subspan(i * shape.k * shape.n, shape.k * shape.n), beta,
                                product.subspan(i * shape.m * shape.n, shape.m * shape.n),
                                magnitude.subspan(i * shape.m * shape.n, shape.m * shape.n));
    }
}

ReducedOnCpu reduce_on_cpu(Reduction reduction, Along along, std::size_t m, std::size_t n,
                           const DistancesOnCpu& distances) {
    const std::size_t results = along == Along::kRows ? m : n;
    const std::size_t count = along == Along::kRows ? n : m;
    const std::size_t step = along == Along::kRows ? 1 : n;
    const bool is_max = reduction == Reduction::kMax;
    ReducedOnCpu reduced{std::vector<double>(results), {}, std::vector<double>(results)};
    if (is_max || reduction == Reduction::kMin) reduced.indices.resize(results);
    for (std::size_t i = 0; i < results; ++i) {
        const std::size_t begin = along == Along::kRows ? i * n : i;
        const auto value = [&](std::size_t j) { return distances.values[begin + j * step]; };
        double sum = 0;
        double largest = -std::numeric_limits<double>::infinity();
        std::size_t best = 0;
        for (std::size_t j = 0; j < count; ++j) {
            const double magnitude = distances.magnitudes[begin + j * step];
            double& bound = reduced.magnitudes[i];
            if (std::isfinite(magnitude))  // what is infinite or NaN is compared as such
                bound = reduction == Reduction::kSum ? bound + magnitude : std::max(bound, magnitude);
            sum += value(j);
            largest = std::max(largest, value(j));
            if (precedes(value(j), value(best), is_max)) best = j;
        }
        if (!reduced.indices.empty()) {
            reduced.values[i] = value(best);
            reduced.indices[i] = static_cast<std::uint32_t>(best);
        } else if (reduction == Reduction::kSum) {
            reduced.values[i] = sum;
        } else if (std::isinf(largest)) {
            reduced.values[i] = std::isnan(sum) ? sum : largest;
        } else {
            double exponentials = 0;
            for (std::size_t j = 0; j < count; ++j)
                exponentials += std::exp(value(j) - largest);
            reduced.values[i] = largest + std::log(exponentials);
            // The error of an element passes through; the sum's relative error is one of its logarithm.
            reduced.magnitudes[i] += 1 + std::abs(reduced.values[i]);
        }
    }
    return reduced;
}

}  // namespace day45
