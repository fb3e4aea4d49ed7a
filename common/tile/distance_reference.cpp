// The reference for distances: plain loops in double.
#include <cmath>

#include "common/check/matmul_reference.hpp"
#include "common/tile/distance.hpp"

namespace course {
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

}  // namespace

DistancesOnCpu distances_on_cpu(Metric metric, std::size_t m, std::size_t n, std::size_t d,
                                std::span<const float> a, std::span<const float> b) {
    DistancesOnCpu result{std::vector<double>(m * n), std::vector<double>(m * n)};
    multiply_on_cpu(m, n, d, 1, a, b, 0, result.values, result.magnitudes);
    if (metric == Metric::kDot) return result;
    const std::vector<double> norms_a = squared_norms(a, m, d, d, 1);
    const std::vector<double> norms_b = squared_norms(b, n, d, 1, n);
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
                for (std::size_t p = 0; p < d; ++p) {
                    const double difference =
                        static_cast<double>(a[i * d + p]) - static_cast<double>(b[p * n + j]);
                    value += difference * difference;
                }
                magnitude = 3 * value;  // of each term, the difference is rounded and then its square
            }
        }
    }
    return result;
}

}  // namespace course
