#include <cstddef>

#include "common/check/matrix_arguments.hpp"
#include "int8_matmul.hpp"

namespace day31 {

void int8_matmul_on_cpu(const MatmulShape& shape, std::span<const std::int8_t> a,
                        std::span<const std::int8_t> w, std::span<std::int32_t> c) {
    const auto [m, n, k] = shape;
    course::require_size("int8_matmul_on_cpu: a", a.size(), m * k);
    course::require_size("int8_matmul_on_cpu: w", w.size(), n * k);
    course::require_size("int8_matmul_on_cpu: c", c.size(), m * n);
    const auto rows = static_cast<std::ptrdiff_t>(shape.m);
#pragma omp parallel for
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
        const auto row = static_cast<std::size_t>(i);
        for (std::size_t col = 0; col < shape.n; ++col) {
            std::int32_t sum = 0;
            for (std::size_t at = 0; at < shape.k; ++at)
                sum += a[row * shape.k + at] * w[col * shape.k + at];
            c[row * shape.n + col] = sum;
        }
    }
}

}  // namespace day31
