#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "matmul_tiled.hpp"

namespace day05 {
namespace {

void require_length(const char* name, std::size_t length, std::size_t expected) {
    if (length != expected) {
        throw std::invalid_argument("multiply_on_cpu: " + std::string(name) + " has " +
                                    std::to_string(length) + " elements; expected " +
                                    std::to_string(expected));
    }
}

}  // namespace

void multiply_on_cpu(Shape shape, std::span<const float> a, std::span<const float> b,
                     std::span<double> product, std::span<double> magnitude) {
    const auto [rows, cols, depth] = shape;
    require_length("a", a.size(), rows * depth);
    require_length("b", b.size(), depth * cols);
    require_length("product", product.size(), rows * cols);
    require_length("magnitude", magnitude.size(), rows * cols);
    // Row by row of B, so that memory is walked along its rows: the order i, k, j instead of i, j, k.
#pragma omp parallel for schedule(dynamic)
    for (std::ptrdiff_t signed_row = 0; signed_row < static_cast<std::ptrdiff_t>(rows); ++signed_row) {
        const auto i = static_cast<std::size_t>(signed_row);
        const std::span<double> sums = product.subspan(i * cols, cols);
        const std::span<double> sizes = magnitude.subspan(i * cols, cols);
        std::fill(sums.begin(), sums.end(), 0.0);
        std::fill(sizes.begin(), sizes.end(), 0.0);
        for (std::size_t k = 0; k < depth; ++k) {
            const double factor = static_cast<double>(a[i * depth + k]);
            const std::span<const float> b_row = b.subspan(k * cols, cols);
            for (std::size_t j = 0; j < cols; ++j) {
                const double term = factor * static_cast<double>(b_row[j]);
                sums[j] += term;
                sizes[j] += std::abs(term);
            }
        }
    }
}

}  // namespace day05
