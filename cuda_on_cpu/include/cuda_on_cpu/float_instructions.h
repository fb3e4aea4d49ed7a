// Instructions on single numbers that have no C++ function (day code reaches them through
// common/device/ptx.cuh).
#pragma once

#include <cfloat>
#include <cmath>

namespace cuda_on_cpu::ptx {

// PTX ISA, .approx: 2^x, more exact than any GPU. As on a GPU, a subnormal result becomes 0. A
// subnormal x needs no special case, because 2^x is 1 whether x is flushed to 0 or not.
inline float exp2_approx(float x) {
    const float result = std::exp2(x);
    return result < FLT_MIN ? 0.0f : result;
}

// PTX ISA, .approx: 1 / sqrt(x), rounded correctly. As on a GPU, a subnormal x counts as 0.
inline float rsqrt_approx(float x) {
    const float operand = std::fabs(x) < FLT_MIN ? std::copysign(0.0f, x) : x;
    return static_cast<float>(1 / std::sqrt(static_cast<double>(operand)));
}

// As std::fmin and std::fmax, but the result is NaN if either operand is NaN.
inline float min_nan(float a, float b) {
    return std::isnan(a) ? a : std::isnan(b) ? b : std::fmin(a, b);
}
inline float max_nan(float a, float b) {
    return std::isnan(a) ? a : std::isnan(b) ? b : std::fmax(a, b);
}

}  // namespace cuda_on_cpu::ptx
