// SYRK, SYMM and TRMM on the CPU, in double, as they are defined.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "structured.hpp"

namespace gemm {
namespace {

// c(i, j) = alpha sum over k of term(i, j, k) + beta c(i, j), with k from 0 to depth, where
// written(i, j).
template <class Written, class Term>
void update(std::size_t m, std::size_t n, std::size_t depth, float alpha, float beta, std::span<double> c,
            std::span<double> magnitude, const Written& written, const Term& term) {
    for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            magnitude[i * n + j] = 0;
            if (!written(i, j)) continue;
            double sum = beta == 0 ? 0 : static_cast<double>(beta) * c[i * n + j];
            double size = std::abs(sum);
            for (std::size_t k = 0; k < depth && alpha != 0; ++k) {
                const double value = static_cast<double>(alpha) * term(i, j, k);
                sum += value;
                size += std::abs(value);
            }
            c[i * n + j] = sum;
            magnitude[i * n + j] = size;
        }
    }
}

bool is_in(Triangle triangle, std::size_t row, std::size_t col) {
    return triangle == Triangle::kLower ? col <= row : row <= col;
}

}  // namespace

void syrk_on_cpu(std::size_t n, std::size_t k, course::Op op_a, Triangle triangle, float alpha,
                 std::span<const float> a, float beta, std::span<double> c, std::span<double> magnitude) {
    const auto element = [&](std::size_t i, std::size_t p) {
        return static_cast<double>(op_a == course::Op::kNone ? a[i * k + p] : a[p * n + i]);
    };
    update(
        n, n, k, alpha, beta, c, magnitude,
        [&](std::size_t i, std::size_t j) { return is_in(triangle, i, j); },
        [&](std::size_t i, std::size_t j, std::size_t p) { return element(i, p) * element(j, p); });
}

void symm_on_cpu(std::size_t m, std::size_t n, Side side, Triangle triangle, float alpha,
                 std::span<const float> a, std::span<const float> b, float beta, std::span<double> c,
                 std::span<double> magnitude) {
    const std::size_t extent = side == Side::kLeft ? m : n;
    const auto element = [&](std::size_t i, std::size_t j) {
        return static_cast<double>(is_in(triangle, i, j) ? a[i * extent + j] : a[j * extent + i]);
    };
    update(
        m, n, extent, alpha, beta, c, magnitude, [](std::size_t, std::size_t) { return true; },
        [&](std::size_t i, std::size_t j, std::size_t p) {
            return side == Side::kLeft ? element(i, p) * static_cast<double>(b[p * n + j])
                                       : static_cast<double>(b[i * n + p]) * element(p, j);
        });
}

void trmm_on_cpu(std::size_t m, std::size_t n, Side side, Triangle triangle, course::Op op_a,
                 Diagonal diagonal, float alpha, std::span<const float> a, std::span<const float> b,
                 float beta, std::span<double> c, std::span<double> magnitude) {
    const std::size_t extent = side == Side::kLeft ? m : n;
    // op(A)(i, j). Where it is zero by definition, there is no term: it is not multiplied by Inf.
    const auto term = [&](std::size_t i, std::size_t j, float other) -> double {
        const std::size_t row = op_a == course::Op::kNone ? i : j;
        const std::size_t col = op_a == course::Op::kNone ? j : i;
        if (!is_in(triangle, row, col)) return 0;
        const double element =
            row == col && diagonal == Diagonal::kUnit ? 1 : static_cast<double>(a[row * extent + col]);
        return element * static_cast<double>(other);
    };
    update(
        m, n, extent, alpha, beta, c, magnitude, [](std::size_t, std::size_t) { return true; },
        [&](std::size_t i, std::size_t j, std::size_t p) {
            return side == Side::kLeft ? term(i, p, b[p * n + j]) : term(p, j, b[i * n + p]);
        });
}

}  // namespace gemm
