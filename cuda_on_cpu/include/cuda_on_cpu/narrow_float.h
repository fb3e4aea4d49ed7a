// Floating point of 6 and of 4 bits, for <cuda_fp6.h> and <cuda_fp4.h>: for storage and for matrix
// products. The formats have neither Inf nor NaN: a number beyond the largest one, and NaN, become
// the largest number.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cassert>
#include <cmath>
#include <concepts>
#include <cstdint>

#include "cuda_on_cpu/small_float.h"

namespace cuda_on_cpu {

struct E2m3 {
    static constexpr int kExponentBits = 2;
    static constexpr int kMantissaBits = 3;
};
struct E3m2 {
    static constexpr int kExponentBits = 3;
    static constexpr int kMantissaBits = 2;
};
struct E2m1 {
    static constexpr int kExponentBits = 2;
    static constexpr int kMantissaBits = 1;
};
template <>
inline constexpr bool kHasInfinity<E2m3> = false;
template <>
inline constexpr bool kHasInfinity<E3m2> = false;
template <>
inline constexpr bool kHasInfinity<E2m1> = false;

template <class Format>
float decode_narrow(unsigned bits) {
    using Limits = FormatLimits<Format>;
    constexpr unsigned kOne = 1u << Format::kMantissaBits;
    const unsigned exponent = (bits & (Limits::kSign - 1u)) / kOne;
    const unsigned mantissa = bits % kOne;
    const float magnitude =
        std::ldexp(static_cast<float>(exponent == 0 ? mantissa : mantissa + kOne),
                   static_cast<int>(exponent == 0 ? 1 : exponent) - Limits::kBias - Format::kMantissaBits);
    return (bits & Limits::kSign) != 0 ? -magnitude : magnitude;
}

template <class Format>
unsigned char encode_narrow(double value, cudaRoundMode rounding) {
    assert(rounding == cudaRoundNearest || rounding == cudaRoundZero);
    constexpr unsigned char kSign = FormatLimits<Format>::kSign;
    constexpr unsigned char kLargest = kSign - 1;
    if (std::isnan(value)) return kLargest;
    if (std::fabs(value) >= static_cast<double>(decode_narrow<Format>(kLargest)))
        return std::signbit(value) ? kSign | kLargest : kLargest;
    return static_cast<unsigned char>(
        encode<Format>(value, rounding == cudaRoundZero ? Rounding::kTowardZero : Rounding::kNearest));
}

template <class Format_>
struct NarrowFloat {
    using Format = Format_;

    unsigned char __x;

    NarrowFloat() = default;
    explicit NarrowFloat(double value) : __x(encode_narrow<Format>(value, cudaRoundNearest)) {}
    explicit NarrowFloat(float value) : NarrowFloat(static_cast<double>(value)) {}
    explicit NarrowFloat(__half value) : NarrowFloat(static_cast<float>(value)) {}
    explicit NarrowFloat(__nv_bfloat16 value) : NarrowFloat(static_cast<float>(value)) {}
    template <std::integral Integer>
    explicit NarrowFloat(Integer value) : NarrowFloat(static_cast<double>(value)) {}

    explicit operator float() const { return decode_narrow<Format>(__x); }
    explicit operator double() const { return static_cast<double>(decode_narrow<Format>(__x)); }
    explicit operator __half() const { return __half(decode_narrow<Format>(__x)); }
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(decode_narrow<Format>(__x)); }
    // Truncates; a negative number becomes 0 in an unsigned integer.
    template <std::integral Integer>
    explicit operator Integer() const {
        const float value = decode_narrow<Format>(__x);
        return std::unsigned_integral<Integer> && value < 0 ? Integer{0} : static_cast<Integer>(value);
    }
    explicit operator bool() const { return decode_narrow<Format>(__x) != 0; }
};

template <class One, class Bits>
One narrow_from_bits(Bits bits) {
    One one;
    one.__x = static_cast<unsigned char>(bits & (2 * FormatLimits<typename One::Format>::kSign - 1));
    return one;
}

// Several numbers in one word, the first in the lowest `kBits` bits.
template <class One, class Storage, int kBits>
struct NarrowPair {
    Storage __x;

    NarrowPair() = default;
    explicit NarrowPair(double2 pair)
        : __x(static_cast<Storage>(One(pair.x).__x | One(pair.y).__x << kBits)) {}
    explicit NarrowPair(float2 pair) : NarrowPair(double2{pair.x, pair.y}) {}
    explicit NarrowPair(__half2 pair) : NarrowPair(__half22float2(pair)) {}
    explicit NarrowPair(__nv_bfloat162 pair) : NarrowPair(__bfloat1622float2(pair)) {}

    explicit operator float2() const {
        return {static_cast<float>(narrow_from_bits<One>(__x)),
                static_cast<float>(narrow_from_bits<One>(__x >> kBits))};
    }
    explicit operator __half2() const { return __float22half2_rn(static_cast<float2>(*this)); }
};

template <class One, class Storage, int kBits>
struct NarrowFour {
    Storage __x;

    NarrowFour() = default;
    explicit NarrowFour(double4 four)
        : __x(static_cast<Storage>(static_cast<unsigned>(One(four.x).__x) |
                                   static_cast<unsigned>(One(four.y).__x) << kBits |
                                   static_cast<unsigned>(One(four.z).__x) << 2 * kBits |
                                   static_cast<unsigned>(One(four.w).__x) << 3 * kBits)) {}
    explicit NarrowFour(float4 four) : NarrowFour(double4{four.x, four.y, four.z, four.w}) {}
    NarrowFour(__half2 low, __half2 high) : NarrowFour(__half22float2(low), __half22float2(high)) {}
    NarrowFour(__nv_bfloat162 low, __nv_bfloat162 high)
        : NarrowFour(__bfloat1622float2(low), __bfloat1622float2(high)) {}

    explicit operator float4() const {
        return {static_cast<float>(narrow_from_bits<One>(__x)),
                static_cast<float>(narrow_from_bits<One>(__x >> kBits)),
                static_cast<float>(narrow_from_bits<One>(__x >> 2 * kBits)),
                static_cast<float>(narrow_from_bits<One>(__x >> 3 * kBits))};
    }

  private:
    NarrowFour(float2 low, float2 high) : NarrowFour(float4{low.x, low.y, high.x, high.y}) {}
};

}  // namespace cuda_on_cpu

// The conversion functions of one width: `kind` is fp6 or fp4, `bits` the distance in bits between
// the two numbers of a pair.
#define CUDA_ON_CPU_NARROW_CONVERSIONS(kind, bits)                                                          \
    inline __nv_##kind##_storage_t __nv_cvt_float_to_##kind(                                                \
        float value, __nv_##kind##_interpretation_t format, cudaRoundMode rounding) {                       \
        return __nv_cvt_double_to_##kind(static_cast<double>(value), format, rounding);                     \
    }                                                                                                       \
    inline __nv_##kind##_storage_t __nv_cvt_halfraw_to_##kind(                                              \
        __half_raw value, __nv_##kind##_interpretation_t format, cudaRoundMode rounding) {                  \
        return __nv_cvt_float_to_##kind(__half2float(value), format, rounding);                             \
    }                                                                                                       \
    inline __nv_##kind##_storage_t __nv_cvt_bfloat16raw_to_##kind(                                          \
        __nv_bfloat16_raw value, __nv_##kind##_interpretation_t format, cudaRoundMode rounding) {           \
        return __nv_cvt_float_to_##kind(__bfloat162float(value), format, rounding);                         \
    }                                                                                                       \
    inline __nv_##kind##x2_storage_t __nv_cvt_double2_to_##kind##x2(                                        \
        double2 pair, __nv_##kind##_interpretation_t format, cudaRoundMode rounding) {                      \
        return static_cast<__nv_##kind##x2_storage_t>(__nv_cvt_double_to_##kind(pair.x, format, rounding) | \
                                                      __nv_cvt_double_to_##kind(pair.y, format, rounding)   \
                                                          << (bits));                                       \
    }                                                                                                       \
    inline __nv_##kind##x2_storage_t __nv_cvt_float2_to_##kind##x2(                                         \
        float2 pair, __nv_##kind##_interpretation_t format, cudaRoundMode rounding) {                       \
        return __nv_cvt_double2_to_##kind##x2({pair.x, pair.y}, format, rounding);                          \
    }                                                                                                       \
    inline __nv_##kind##x2_storage_t __nv_cvt_halfraw2_to_##kind##x2(                                       \
        __half2_raw pair, __nv_##kind##_interpretation_t format, cudaRoundMode rounding) {                  \
        return __nv_cvt_float2_to_##kind##x2(__half22float2(pair), format, rounding);                       \
    }                                                                                                       \
    inline __nv_##kind##x2_storage_t __nv_cvt_bfloat16raw2_to_##kind##x2(                                   \
        __nv_bfloat162_raw pair, __nv_##kind##_interpretation_t format, cudaRoundMode rounding) {           \
        return __nv_cvt_float2_to_##kind##x2(__bfloat1622float2(pair), format, rounding);                   \
    }                                                                                                       \
    inline __half2_raw __nv_cvt_##kind##x2_to_halfraw2(__nv_##kind##x2_storage_t pair,                      \
                                                       __nv_##kind##_interpretation_t format) {             \
        return {                                                                                            \
            __nv_cvt_##kind##_to_halfraw(static_cast<__nv_##kind##_storage_t>(pair & ((1 << (bits)) - 1)),  \
                                         format)                                                            \
                .x,                                                                                         \
            __nv_cvt_##kind##_to_halfraw(static_cast<__nv_##kind##_storage_t>(pair >> (bits)), format).x};  \
    }
