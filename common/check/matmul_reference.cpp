#include "common/check/matmul_reference.hpp"

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace course {
namespace {

void require_length(const char* name, std::size_t length, std::size_t expected) {
    if (length != expected) {
        throw std::invalid_argument("multiply_on_cpu: " + std::string(name) + " has " +
                                    std::to_string(length) + " elements; expected " +
                                    std::to_string(expected));
    }
}

}  // namespace

void multiply_on_cpu(std::size_t rows, std::size_t cols, std::size_t depth, float alpha,
                     std::span<const float> a, std::span<const float> b, float beta,
                     std::span<double> product, std::span<double> magnitude) {
    require_length("a", a.size(), rows * depth);
    require_length("b", b.size(), depth * cols);
    require_length("product", product.size(), rows * cols);
    require_length("magnitude", magnitude.size(), rows * cols);
    // A small product takes less time than waking the threads.
    [[maybe_unused]] const bool is_large = rows * cols * depth > (std::size_t{1} << 18);
    // The loop order is i, k, j instead of i, j, k, so that the inner loop reads B along its rows.
#pragma omp parallel for schedule(dynamic) if (is_large)
    for (std::ptrdiff_t signed_row = 0; signed_row < static_cast<std::ptrdiff_t>(rows); ++signed_row) {
        const auto i = static_cast<std::size_t>(signed_row);
        const std::span<double> sums = product.subspan(i * cols, cols);
        const std::span<double> sizes = magnitude.subspan(i * cols, cols);
        for (std::size_t j = 0; j < cols; ++j) {
            sums[j] = beta == 0 ? 0.0 : static_cast<double>(beta) * sums[j];
            sizes[j] = std::abs(sums[j]);
        }
        if (alpha == 0) continue;
        for (std::size_t p = 0; p < depth; ++p) {
            const double factor = static_cast<double>(alpha) * static_cast<double>(a[i * depth + p]);
            const std::span<const float> b_row = b.subspan(p * cols, cols);
#pragma omp simd
            for (std::size_t j = 0; j < cols; ++j) {
                const double term = factor * static_cast<double>(b_row[j]);
                sums[j] += term;
                sizes[j] += std::abs(term);
            }
        }
    }
}

void multiply_batch_on_cpu(std::size_t count, std::size_t rows, std::size_t cols, std::size_t depth,
                           float alpha, std::span<const float> a, std::span<const float> b, float beta,
                           std::span<double> product, std::span<double> magnitude) {
    for (std::size_t i = 0; i < count; ++i) {
        multiply_on_cpu(rows, cols, depth, alpha, a.subspan(i * rows * depth, rows * depth),
                        b.subspan(i * depth * cols, depth * cols), beta,
                        product.subspan(i * rows * cols, rows * cols),
                        magnitude.subspan(i * rows * cols, rows * cols));
    }
}

}  // namespace course
