// Is a convolution right? For the test and the program.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "common/check/verify.hpp"
#include "convolution.hpp"

namespace day10 {

// Float: the bound of a sum of rows * cols terms, which holds for the separable versions, with
// fewer roundings, as well.
// Integers: such a sum, then rounded to the nearest, which adds half a unit. `extra` units are
// allowed beyond that.
template <class T>
course::VerifyResult verify_convolution(const std::vector<T>& got, const Expected& expected,
                                        const Filter& filter, double extra = 0) {
    const course::Bound bound{.terms = filter.rows() * filter.cols()};
    if constexpr (std::is_same_v<T, float>) {
        return course::verify(got, expected.value, bound, expected.magnitude);
    } else {
        const double per_magnitude = bound.roundings() * course::FloatTraits<float>::kEpsilon;
        std::vector<double> value = expected.value;
        std::vector<double> magnitude = expected.magnitude;
        for (double& v : value)
            v = std::clamp(v, 0.0, static_cast<double>(std::numeric_limits<T>::max()));
        for (double& m : magnitude)
            m += (0.5 + extra) / per_magnitude;
        return course::verify(std::vector<float>(got.begin(), got.end()), value, bound, magnitude);
    }
}

}  // namespace day10
