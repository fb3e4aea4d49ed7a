// What the versions share on the host: checks of arguments.
#pragma once

#include <string>

#include "arguments.hpp"
#include "eight_bit.hpp"

namespace day40::eight_bit {

// Throws std::invalid_argument when shapes do not match or C overlaps A or B.
template <class T>
void check(const Product<T>& product) {
    const auto& [a, b, c] = product;
    const auto shape = [](const auto& m) {
        return std::to_string(m.rows()) + " x " + std::to_string(m.cols());
    };
    if (a.rows() != c.rows() || a.cols() != b.cols() || b.rows() != c.cols())
        throw std::invalid_argument("eight_bit: A is " + shape(a) + ", B is " + shape(b) + ", C is " +
                                    shape(c) + "; expected A: M x K, B: N x K, C: M x N");
    for (const std::size_t extent : {c.rows(), c.cols(), a.cols()})
        if (extent > kMostExtent)
            throw std::invalid_argument("eight_bit: M, N or K is " + std::to_string(extent) +
                                        "; expected at most " + std::to_string(kMostExtent));
    if (overlap(c, a)) throw std::invalid_argument("eight_bit: C overlaps A; expected no common element");
    if (overlap(c, b)) throw std::invalid_argument("eight_bit: C overlaps B; expected no common element");
}

// What any version must do at least.
inline course::Work work_of(const Shape& shape) {
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = m * k + k * n + 4 * m * n,
            .written = 4 * m * n,
            .flops = 2 * m * n * k,
            .arithmetic = course::Arithmetic::kOther};
}

}  // namespace day40::eight_bit
