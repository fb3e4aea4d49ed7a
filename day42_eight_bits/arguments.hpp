// What the versions share on the host: checks of arguments.
#pragma once

#include "common/check/matmul_arguments.hpp"
#include "common/check/require.hpp"
#include "eight_bits.hpp"

namespace day42 {

// Throws std::invalid_argument when shapes do not match or C overlaps A or B.
template <class T>
void check(const Product<T>& product) {
    const auto& [a, b, c] = product;
    course::require(a.rows() == c.rows() && a.cols() == b.cols() && b.rows() == c.cols(), "eight_bits: A is ",
                    a, ", B is ", b, ", C is ", c, "; expected A: M x K, B: N x K, C: M x N");
    course::check_extents_and_overlap("eight_bits", a, b, c);
}

// The least work that every version must do.
inline course::Work work_of(const Shape& shape) {
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = m * k + k * n + 4 * m * n,
            .written = 4 * m * n,
            .flops = 2 * m * n * k,
            .arithmetic = course::Arithmetic::kOther};
}

}  // namespace day42
