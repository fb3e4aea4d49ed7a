// Instructions on single numbers that C++ has no function for (day code reaches them through
// common/device/ptx.cuh).
#pragma once

#include <cfloat>
#include <cmath>

namespace cuda_on_cpu::ptx {

// PTX ISA, .approx: 2^x, closer than any GPU. As there, results below the normal numbers are 0;
// that an x below them counts as 0 needs no line of its own, since 2^x is 1 for it either way.
inline float exp2_approx(float x) {
    const float result = std::exp2(x);
    return result < FLT_MIN ? 0.0f : result;
}

// As std::fmin and std::fmax, but NaN if one of the two is.
inline float min_nan(float a, float b) {
    return std::isnan(a) ? a : std::isnan(b) ? b : std::fmin(a, b);
}
inline float max_nan(float a, float b) {
    return std::isnan(a) ? a : std::isnan(b) ? b : std::fmax(a, b);
}

}  // namespace cuda_on_cpu::ptx
