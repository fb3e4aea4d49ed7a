#include <cmath>
#include <stdexcept>
#include <string>

#include "sgemm.hpp"

namespace gemm {
namespace {

void require_length(const char* name, std::size_t length, std::size_t expected) {
    if (length != expected) {
        throw std::invalid_argument("multiply_on_cpu: " + std::string(name) + " has " +
                                    std::to_string(length) + " elements; expected " +
                                    std::to_string(expected));
    }
}

}  // namespace

void multiply_on_cpu(const Shape& shape, float alpha, std::span<const float> a, std::span<const float> b,
                     float beta, std::span<double> product, std::span<double> magnitude) {
    const auto [m, n, k] = shape;
    require_length("a", a.size(), m * k);
    require_length("b", b.size(), k * n);
    require_length("product", product.size(), m * n);
    require_length("magnitude", magnitude.size(), m * n);
    // Row by row of B, so that memory is walked along its rows: the order i, k, j instead of i, j, k.
#pragma omp parallel for schedule(dynamic)
    for (std::ptrdiff_t signed_row = 0; signed_row < static_cast<std::ptrdiff_t>(m); ++signed_row) {
        const auto i = static_cast<std::size_t>(signed_row);
        const std::span<double> sums = product.subspan(i * n, n);
        const std::span<double> sizes = magnitude.subspan(i * n, n);
        for (std::size_t j = 0; j < n; ++j) {
            sums[j] = beta == 0 ? 0.0 : static_cast<double>(beta) * sums[j];
            sizes[j] = std::abs(sums[j]);
        }
        if (alpha == 0) continue;
        for (std::size_t p = 0; p < k; ++p) {
            const double factor = static_cast<double>(alpha) * static_cast<double>(a[i * k + p]);
            const std::span<const float> b_row = b.subspan(p * n, n);
            for (std::size_t j = 0; j < n; ++j) {
                const double term = factor * static_cast<double>(b_row[j]);
                sums[j] += term;
                sizes[j] += std::abs(term);
            }
        }
    }
}

}  // namespace gemm
