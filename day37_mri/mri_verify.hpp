// Is a sum of waves right? For the test and the program.
//
// With eps = 2^-23, u = eps / 2 and A = |kx x| + |ky y| + |kz z|, a term is off by at most
//   phase      3 u A turns for three products and two sums, which is 2 pi * 1.5 eps A
//   2 pi       two roundings, of the constant and of the product: 2 pi * eps A without range
//              reduction; with it, A is at most 1/2 here
//   sine       at most 2^-21.19 = 3.5 eps for those of the special function units
//   mu         2 eps, relative to |phi| |d|
// times |mu|. So 16 A + 10 eps bound a term, and 2 sqrt(M) eps the sum of M terms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "common/check/verify.hpp"
#include "mri.hpp"

namespace day37 {

struct ErrorOfTerm {
    double per_phase = 16;  // in eps, per turn of A
    double fixed = 10;      // in eps
};

inline std::vector<double> tolerances(const Expected& expected, std::size_t samples,
                                      const ErrorOfTerm& error = {}) {
    std::vector<double> all(expected.weight.size());
    const double sum = 2 * std::sqrt(static_cast<double>(std::max<std::size_t>(samples, 1)));
    for (std::size_t n = 0; n < all.size(); ++n)
        all[n] = error.per_phase * expected.phase_weight[n] + (error.fixed + sum) * expected.weight[n];
    return all;  // in eps
}

inline course::VerifyResult verify_sums(const std::vector<float>& re, const std::vector<float>& im,
                                        const Expected& expected, std::size_t samples,
                                        const ErrorOfTerm& error = {}) {
    const std::vector<double> allowed = tolerances(expected, samples, error);
    const course::Bound bound{.factor = 1};
    course::VerifyResult result = course::verify(re, expected.re, bound, allowed);
    const course::VerifyResult imaginary = course::verify(im, expected.im, bound, allowed);
    if (!imaginary.ok()) result.damage += " imaginary parts: " + imaginary.message();
    return result;
}

// Every stride-th value: those that are compared.
template <class T>
std::vector<T> every(const std::vector<T>& values, std::size_t stride) {
    std::vector<T> some;
    for (std::size_t i = 0; i < values.size(); i += stride)
        some.push_back(values[i]);
    return some;
}

// The values that are not compared must at least have been written: what to report of them.
inline std::string unwritten_values(const std::vector<float>& values) {
    const auto count = std::ranges::count_if(values, [](float value) { return std::isnan(value); });
    return count == 0 ? "" : " " + std::to_string(count) + " values are NaN";
}

}  // namespace day37
