// CUDA's mathematical functions beyond those of the C library, in the global namespace as in CUDA.
//
// All are at least as exact as on a GPU. In particular, the fast ones (__expf, __sinf ...) return
// the exact function's value: their larger error is the one property that does not show on the CPU.
#pragma once

#include <math.h>
#include <stdlib.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "cuda_on_cpu/rounding.h"

// One instruction on a GPU, and a few here; as functions of the C library they would be calls. As
// there, a number and NaN give the number, and two equal numbers give the second.
extern "C" {
[[gnu::gnu_inline, gnu::always_inline]] extern inline float fmaxf(float a, float b) noexcept {
    const float larger = a > b ? a : b;
    return b == b ? larger : a;
}
[[gnu::gnu_inline, gnu::always_inline]] extern inline float fminf(float a, float b) noexcept {
    const float smaller = a < b ? a : b;
    return b == b ? smaller : a;
}
}

// ---- min, max ------------------------------------------------------------------------------------------------------
// Functions by value, not templates: with `using namespace std` they are preferred to std::min and
// std::max when both match exactly.

#define CUDA_ON_CPU_MIN_MAX(Result, A, B)                                                \
    inline Result min(A a, B b) {                                                        \
        return static_cast<Result>(b) < static_cast<Result>(a) ? static_cast<Result>(b)  \
                                                               : static_cast<Result>(a); \
    }                                                                                    \
    inline Result max(A a, B b) {                                                        \
        return static_cast<Result>(a) < static_cast<Result>(b) ? static_cast<Result>(b)  \
                                                               : static_cast<Result>(a); \
    }
#define CUDA_ON_CPU_INTEGER_MIN_MAX(Integer)                                  \
    CUDA_ON_CPU_MIN_MAX(Integer, Integer, Integer)                            \
    CUDA_ON_CPU_MIN_MAX(unsigned Integer, unsigned Integer, unsigned Integer) \
    CUDA_ON_CPU_MIN_MAX(unsigned Integer, Integer, unsigned Integer)          \
    CUDA_ON_CPU_MIN_MAX(unsigned Integer, unsigned Integer, Integer)
#define CUDA_ON_CPU_REAL_MIN_MAX(Result, A, B)                            \
    inline Result min(A a, B b) {                                         \
        return std::fmin(static_cast<Result>(a), static_cast<Result>(b)); \
    }                                                                     \
    inline Result max(A a, B b) {                                         \
        return std::fmax(static_cast<Result>(a), static_cast<Result>(b)); \
    }

CUDA_ON_CPU_INTEGER_MIN_MAX(int)
CUDA_ON_CPU_INTEGER_MIN_MAX(long)
CUDA_ON_CPU_INTEGER_MIN_MAX(long long)
inline float min(float a, float b) {
    return fminf(a, b);
}
inline float max(float a, float b) {
    return fmaxf(a, b);
}
CUDA_ON_CPU_REAL_MIN_MAX(double, double, double)
CUDA_ON_CPU_REAL_MIN_MAX(double, float, double)
CUDA_ON_CPU_REAL_MIN_MAX(double, double, float)
#undef CUDA_ON_CPU_REAL_MIN_MAX
#undef CUDA_ON_CPU_INTEGER_MIN_MAX
#undef CUDA_ON_CPU_MIN_MAX

inline unsigned int umin(unsigned int a, unsigned int b) {
    return min(a, b);
}
inline unsigned int umax(unsigned int a, unsigned int b) {
    return max(a, b);
}
inline long long llmin(long long a, long long b) {
    return min(a, b);
}
inline long long llmax(long long a, long long b) {
    return max(a, b);
}
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) {
    return min(a, b);
}
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) {
    return max(a, b);
}

// ---- One rounding, in the direction of the suffix ------------------------------------------------------------------
// Never fused with an adjacent operation, as the compiler may do with a plain a * b + c.

#define CUDA_ON_CPU_ROUNDED_REAL(suffix, mode, Real, f, fma_name)                                         \
    inline Real __##f##add_##suffix(Real a, Real b) {                                                     \
        return cuda_on_cpu::rounded<mode>([](Real x, Real y) { return x + y; }, a, b);                    \
    }                                                                                                     \
    inline Real __##f##sub_##suffix(Real a, Real b) {                                                     \
        return cuda_on_cpu::rounded<mode>([](Real x, Real y) { return x - y; }, a, b);                    \
    }                                                                                                     \
    inline Real __##f##mul_##suffix(Real a, Real b) {                                                     \
        return cuda_on_cpu::rounded<mode>([](Real x, Real y) { return x * y; }, a, b);                    \
    }                                                                                                     \
    inline Real __##f##div_##suffix(Real a, Real b) {                                                     \
        return cuda_on_cpu::rounded<mode>([](Real x, Real y) { return x / y; }, a, b);                    \
    }                                                                                                     \
    inline Real __##f##rcp_##suffix(Real a) {                                                             \
        return __##f##div_##suffix(Real{1}, a);                                                           \
    }                                                                                                     \
    inline Real __##f##sqrt_##suffix(Real a) {                                                            \
        return cuda_on_cpu::rounded<mode>([](Real x) { return std::sqrt(x); }, a);                        \
    }                                                                                                     \
    inline Real fma_name##_##suffix(Real a, Real b, Real c) {                                             \
        return cuda_on_cpu::rounded<mode>([](Real x, Real y, Real z) { return std::fma(x, y, z); }, a, b, \
                                          c);                                                             \
    }
#define CUDA_ON_CPU_ROUNDED(suffix, mode)                          \
    CUDA_ON_CPU_ROUNDED_REAL(suffix, mode, float, f, __fmaf)       \
    CUDA_ON_CPU_ROUNDED_REAL(suffix, mode, double, d, __fma)       \
    inline float __fmaf_ieee_##suffix(float a, float b, float c) { \
        return __fmaf_##suffix(a, b, c);                           \
    }

CUDA_ON_CPU_ROUNDED(rn, cuda_on_cpu::Rounding::kNearest)
CUDA_ON_CPU_ROUNDED(rz, cuda_on_cpu::Rounding::kTowardZero)
CUDA_ON_CPU_ROUNDED(ru, cuda_on_cpu::Rounding::kUp)
CUDA_ON_CPU_ROUNDED(rd, cuda_on_cpu::Rounding::kDown)
#undef CUDA_ON_CPU_ROUNDED
#undef CUDA_ON_CPU_ROUNDED_REAL

// The same for pairs of numbers.
#define CUDA_ON_CPU_ROUNDED_PAIR(suffix)                                         \
    inline float2 __fadd2_##suffix(float2 a, float2 b) {                         \
        return {__fadd_##suffix(a.x, b.x), __fadd_##suffix(a.y, b.y)};           \
    }                                                                            \
    inline float2 __fmul2_##suffix(float2 a, float2 b) {                         \
        return {__fmul_##suffix(a.x, b.x), __fmul_##suffix(a.y, b.y)};           \
    }                                                                            \
    inline float2 __ffma2_##suffix(float2 a, float2 b, float2 c) {               \
        return {__fmaf_##suffix(a.x, b.x, c.x), __fmaf_##suffix(a.y, b.y, c.y)}; \
    }

CUDA_ON_CPU_ROUNDED_PAIR(rn)
CUDA_ON_CPU_ROUNDED_PAIR(rz)
CUDA_ON_CPU_ROUNDED_PAIR(ru)
CUDA_ON_CPU_ROUNDED_PAIR(rd)
#undef CUDA_ON_CPU_ROUNDED_PAIR

inline float __frsqrt_rn(float x) {
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}

// ---- Fast maths ----------------------------------------------------------------------------------------------------
// glibc's <math.h> declares __expf, __sinf, __logf and others as extern "C" but does not define any
// of them for programs. The definitions here have the same signature (including noexcept), so they
// define those functions: no conflict, and no unresolved symbol. On a system that does not declare
// them they are ordinary C++ functions.

inline float __expf(float x) noexcept {
    return expf(x);
}
inline float __exp10f(float x) noexcept {
    return exp10f(x);
}
inline float __logf(float x) noexcept {
    return logf(x);
}
inline float __log2f(float x) noexcept {
    return log2f(x);
}
inline float __log10f(float x) noexcept {
    return log10f(x);
}
inline float __sinf(float x) noexcept {
    return sinf(x);
}
inline float __cosf(float x) noexcept {
    return cosf(x);
}
inline float __tanf(float x) noexcept {
    return tanf(x);
}
inline float __tanhf(float x) noexcept {
    return tanhf(x);
}
inline void __sincosf(float x, float* sine, float* cosine) noexcept {
    *sine = sinf(x);
    *cosine = cosf(x);
}

// Computed with the logarithm, so that a negative base gives NaN even where powf would not.
inline float __powf(float x, float y) noexcept {
    return exp2f(y * log2f(x));
}

// Above 2^126 the divisor's reciprocal becomes 0, and so does the quotient (NaN for an infinite x).
inline float __fdividef(float x, float y) {
    const bool reciprocal_is_lost = fabsf(y) > 0x1p126f && fabsf(y) <= std::numeric_limits<float>::max();
    return reciprocal_is_lost ? x * 0.0f : x / y;
}

// Clamps to [0, 1]; NaN gives 0.
inline float __saturatef(float x) {
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

// ---- Roots, norms, trigonometry of multiples of pi -----------------------------------------------------------------

inline float fdividef(float x, float y) {
    return x / y;
}
inline double rsqrt(double x) noexcept {
    return 1.0 / std::sqrt(x);
}
inline float rsqrtf(float x) noexcept {
    return __frsqrt_rn(x);
}
inline double rcbrt(double x) {
    return 1.0 / std::cbrt(x);
}
// Modified Bessel functions of the first kind, even and odd.
inline double cyl_bessel_i0(double x) noexcept {
    return std::cyl_bessel_i(0.0, std::fabs(x));
}
inline double cyl_bessel_i1(double x) noexcept {
    return std::copysign(std::cyl_bessel_i(1.0, std::fabs(x)), x);
}

namespace cuda_on_cpu {

// The Euclidean norm of all coordinates. The squares do not overflow, because long double has a far
// greater range on every supported platform. An infinite coordinate takes precedence over NaN.
template <class... Real>
long double euclidean_norm(Real... coordinates) {
    if ((std::isinf(coordinates) || ...)) return std::numeric_limits<long double>::infinity();
    return std::sqrt(((static_cast<long double>(coordinates) * static_cast<long double>(coordinates)) + ...));
}

template <class Real>
long double euclidean_norm(int dimensions, const Real* coordinates) {
    long double norm = 0;
    for (int i = 0; i < dimensions; ++i)
        norm = euclidean_norm(norm, static_cast<long double>(coordinates[i]));
    return norm;
}

// sin(pi * x) and cos(pi * x), exact where the result is 0, 1 or -1.
inline double sine_of_half_turns(double x) {
    double turn = std::remainder(x, 2.0);
    if (std::fabs(turn) > 0.5) turn = std::copysign(1.0, turn) - turn;
    if (turn == 0.0) return std::copysign(0.0, x);
    return std::sin(std::numbers::pi * turn);
}
inline double cosine_of_half_turns(double x) {
    const double turn = std::fabs(std::remainder(x, 2.0));
    return turn < 0.25 ? std::cos(std::numbers::pi * turn) : std::sin(std::numbers::pi * (0.5 - turn));
}

}  // namespace cuda_on_cpu

inline double sinpi(double x) noexcept {
    return cuda_on_cpu::sine_of_half_turns(x);
}
inline double cospi(double x) noexcept {
    return cuda_on_cpu::cosine_of_half_turns(x);
}
inline void sincospi(double x, double* sine, double* cosine) {
    *sine = sinpi(x);
    *cosine = cospi(x);
}

inline double rhypot(double x, double y) {
    return static_cast<double>(1 / cuda_on_cpu::euclidean_norm(x, y));
}
inline double norm3d(double x, double y, double z) {
    return static_cast<double>(cuda_on_cpu::euclidean_norm(x, y, z));
}
inline double rnorm3d(double x, double y, double z) {
    return static_cast<double>(1 / cuda_on_cpu::euclidean_norm(x, y, z));
}
inline double norm4d(double x, double y, double z, double w) {
    return static_cast<double>(cuda_on_cpu::euclidean_norm(x, y, z, w));
}
inline double rnorm4d(double x, double y, double z, double w) {
    return static_cast<double>(1 / cuda_on_cpu::euclidean_norm(x, y, z, w));
}
inline double norm(int dimensions, const double* p) {
    return static_cast<double>(cuda_on_cpu::euclidean_norm(dimensions, p));
}
inline double rnorm(int dimensions, const double* p) {
    return static_cast<double>(1 / cuda_on_cpu::euclidean_norm(dimensions, p));
}

inline float rhypotf(float x, float y) {
    return static_cast<float>(rhypot(x, y));
}
inline float norm3df(float x, float y, float z) {
    return static_cast<float>(norm3d(x, y, z));
}
inline float rnorm3df(float x, float y, float z) {
    return static_cast<float>(rnorm3d(x, y, z));
}
inline float norm4df(float x, float y, float z, float w) {
    return static_cast<float>(norm4d(x, y, z, w));
}
inline float rnorm4df(float x, float y, float z, float w) {
    return static_cast<float>(rnorm4d(x, y, z, w));
}
inline float normf(int dimensions, const float* p) {
    return static_cast<float>(cuda_on_cpu::euclidean_norm(dimensions, p));
}
inline float rnormf(int dimensions, const float* p) {
    return static_cast<float>(1 / cuda_on_cpu::euclidean_norm(dimensions, p));
}

// ---- The error function's relatives --------------------------------------------------------------------------------

namespace cuda_on_cpu {

// One Halley step towards the root of error(x) = 0, where the derivative of error is slope and its
// second derivative is -2 x slope, as for erf and erfc.
inline double halley_step(double x, double error, double slope) {
    const double newton = error / slope;
    return x - newton / (1.0 + x * newton);
}

inline double erf_slope(double x) {
    return 2.0 * std::numbers::inv_sqrtpi * std::exp(-x * x);
}

// Each step triples the number of correct digits; the starting values have three or more.
constexpr int kHalleySteps = 3;

// x with erfc(x) = tail, for 0 < tail <= 1. Starts from Hastings' approximation of the normal
// quantile (Abramowitz and Stegun, 26.2.23).
inline double inverse_erfc_of_tail(double tail) {
    const double t = std::sqrt(-2.0 * std::log(tail / 2));
    const double quantile = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                                    (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    double x = quantile / std::numbers::sqrt2;
    for (int i = 0; i < kHalleySteps; ++i)
        x = halley_step(x, std::erfc(x) - tail, -erf_slope(x));
    return x;
}

// x with erf(x) = y, for |y| <= 1/2, from the first terms of the power series.
inline double inverse_erf_near_zero(double y) {
    const double scaled = y / erf_slope(0.0);
    double x = scaled * (1.0 + scaled * scaled / 3.0);
    for (int i = 0; i < kHalleySteps; ++i)
        x = halley_step(x, std::erf(x) - y, erf_slope(x));
    return x;
}

}  // namespace cuda_on_cpu

inline double erfcinv(double y) {
    if (!(y >= 0.0 && y <= 2.0)) return std::numeric_limits<double>::quiet_NaN();
    if (y == 0.0) return std::numeric_limits<double>::infinity();
    if (y == 2.0) return -std::numeric_limits<double>::infinity();
    if (y > 0.5 && y < 1.5) return -cuda_on_cpu::inverse_erf_near_zero(y - 1.0);
    return y < 1.0 ? cuda_on_cpu::inverse_erfc_of_tail(y) : -cuda_on_cpu::inverse_erfc_of_tail(2.0 - y);
}

inline double erfinv(double y) {
    if (std::fabs(y) <= 0.5) return cuda_on_cpu::inverse_erf_near_zero(y);
    return std::copysign(erfcinv(1.0 - std::fabs(y)), y);
}

inline double normcdf(double x) {
    return static_cast<double>(std::erfc(-x / std::numbers::sqrt2_v<long double>) / 2);
}
inline double normcdfinv(double y) {
    return -std::numbers::sqrt2 * erfcinv(2.0 * y);
}

// exp(x^2) erfc(x). For large x by its asymptotic series, whose terms fall below the last digit
// before they grow again.
inline double erfcx(double x) {
    if (x < 10.0) {
        const long double wide = x;
        return static_cast<double>(std::exp(wide * wide) * std::erfc(wide));
    }
    const double ratio = -1.0 / (2.0 * x * x);
    double term = 1.0;
    double sum = 1.0;
    for (int n = 1; n <= 25; n += 2) {
        term *= n * ratio;
        sum += term;
    }
    return sum * std::numbers::inv_sqrtpi / x;
}

// ---- Single-precision twins: the f-named ones, and overloads for float ---------------------------------------------

#define CUDA_ON_CPU_FLOAT_TWIN(name)                             \
    inline float name##f(float x) noexcept {                     \
        return static_cast<float>(name(static_cast<double>(x))); \
    }                                                            \
    inline float name(float x) noexcept {                        \
        return name##f(x);                                       \
    }

CUDA_ON_CPU_FLOAT_TWIN(rcbrt)
CUDA_ON_CPU_FLOAT_TWIN(cyl_bessel_i0)
CUDA_ON_CPU_FLOAT_TWIN(cyl_bessel_i1)
CUDA_ON_CPU_FLOAT_TWIN(sinpi)
CUDA_ON_CPU_FLOAT_TWIN(cospi)
CUDA_ON_CPU_FLOAT_TWIN(erfcinv)
CUDA_ON_CPU_FLOAT_TWIN(erfinv)
CUDA_ON_CPU_FLOAT_TWIN(normcdf)
CUDA_ON_CPU_FLOAT_TWIN(normcdfinv)
CUDA_ON_CPU_FLOAT_TWIN(erfcx)
#undef CUDA_ON_CPU_FLOAT_TWIN

inline float rsqrt(float x) noexcept {
    return rsqrtf(x);
}
inline float exp10(float x) noexcept {
    return exp10f(x);
}
inline void sincos(float x, float* sine, float* cosine) noexcept {
    sincosf(x, sine, cosine);
}
inline void sincospif(float x, float* sine, float* cosine) {
    *sine = sinpif(x);
    *cosine = cospif(x);
}
inline void sincospi(float x, float* sine, float* cosine) {
    sincospif(x, sine, cosine);
}
