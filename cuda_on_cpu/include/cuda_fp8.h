// 8-bit floating point: __nv_fp8_e4m3 (numbers up to 448, no Inf) and __nv_fp8_e5m2 (up to 57344).
// They are for storage and for matrix products, so they have conversions but no arithmetic. The
// scale factors of blocks of such numbers are __nv_fp8_e8m0, powers of two.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <concepts>
#include <limits>

#include "cuda_on_cpu/small_float.h"

using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;  // two of them, the first in the lower byte
using __nv_fp8x4_storage_t = unsigned int;

// What a number beyond the largest becomes. With saturation: the largest number; without: Inf, or
// NaN in E4M3.
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace cuda_on_cpu {

template <class Format>
__nv_fp8_storage_t encode_fp8(double value, __nv_saturation_t saturate) {
    using Limits = FormatLimits<Format>;
    const std::uint16_t bits = encode<Format>(value);
    const bool beyond = (bits & (Limits::kSign - 1)) >= Limits::kInfinity && !std::isnan(value);
    const bool clamped = beyond && saturate == __NV_SATFINITE;
    return static_cast<__nv_fp8_storage_t>(clamped ? (bits & Limits::kSign) | Limits::kMax : bits);
}

template <class Format_>
struct Fp8 {
    using Format = Format_;

    __nv_fp8_storage_t __x;

    Fp8() = default;
    explicit Fp8(float value) : Fp8(static_cast<double>(value)) {}
    explicit Fp8(double value) : __x(encode_fp8<Format>(value, __NV_SATFINITE)) {}
    explicit Fp8(__half value) : Fp8(static_cast<float>(value)) {}
    explicit Fp8(__nv_bfloat16 value) : Fp8(static_cast<float>(value)) {}
    template <std::integral Integer>
    explicit Fp8(Integer value) : Fp8(static_cast<float>(value)) {}

    explicit operator float() const { return decode<Format>(__x); }
    explicit operator double() const { return static_cast<double>(decode<Format>(__x)); }
    explicit operator __half() const { return __half(decode<Format>(__x)); }
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(decode<Format>(__x)); }
};

}  // namespace cuda_on_cpu

struct __nv_fp8_e4m3 : cuda_on_cpu::Fp8<cuda_on_cpu::E4m3> {
    using Fp8::Fp8;
};
struct __nv_fp8_e5m2 : cuda_on_cpu::Fp8<cuda_on_cpu::E5m2> {
    using Fp8::Fp8;
};

inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double value, __nv_saturation_t saturate,
                                                 __nv_fp8_interpretation_t format) {
    return format == __NV_E4M3 ? cuda_on_cpu::encode_fp8<cuda_on_cpu::E4m3>(value, saturate)
                               : cuda_on_cpu::encode_fp8<cuda_on_cpu::E5m2>(value, saturate);
}
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t saturate,
                                                __nv_fp8_interpretation_t format) {
    return __nv_cvt_double_to_fp8(static_cast<double>(value), saturate, format);
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw value, __nv_saturation_t saturate,
                                                  __nv_fp8_interpretation_t format) {
    return __nv_cvt_float_to_fp8(__half2float(value), saturate, format);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw value, __nv_saturation_t saturate,
                                                      __nv_fp8_interpretation_t format) {
    return __nv_cvt_float_to_fp8(__bfloat162float(value), saturate, format);
}

// The first number of a pair becomes the lower byte.
inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 pair, __nv_saturation_t saturate,
                                                      __nv_fp8_interpretation_t format) {
    return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_double_to_fp8(pair.x, saturate, format) |
                                             __nv_cvt_double_to_fp8(pair.y, saturate, format) << 8);
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 pair, __nv_saturation_t saturate,
                                                     __nv_fp8_interpretation_t format) {
    return __nv_cvt_double2_to_fp8x2({pair.x, pair.y}, saturate, format);
}
inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw pair, __nv_saturation_t saturate,
                                                       __nv_fp8_interpretation_t format) {
    return __nv_cvt_float2_to_fp8x2(__half22float2(pair), saturate, format);
}
inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw pair,
                                                           __nv_saturation_t saturate,
                                                           __nv_fp8_interpretation_t format) {
    return __nv_cvt_float2_to_fp8x2(__bfloat1622float2(pair), saturate, format);
}

inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t bits, __nv_fp8_interpretation_t format) {
    return __half(format == __NV_E4M3 ? cuda_on_cpu::decode<cuda_on_cpu::E4m3>(bits)
                                      : cuda_on_cpu::decode<cuda_on_cpu::E5m2>(bits));
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t pair, __nv_fp8_interpretation_t format) {
    return {__nv_cvt_fp8_to_halfraw(pair & 0xff, format).x, __nv_cvt_fp8_to_halfraw(pair >> 8, format).x};
}

// --- Powers of two -------------------------------------------------------------------------------
// The 8 bits e mean the number 2^(e - 127), or NaN if all bits are set. There is no sign and no 0.

namespace cuda_on_cpu {

inline constexpr __nv_fp8_storage_t kE8m0Nan = 0xff;
inline constexpr __nv_fp8_storage_t kE8m0Largest = 0xfe;

// Rounds |value| to a power of two, downwards (cudaRoundZero) or upwards (cudaRoundPosInf).
inline __nv_fp8_storage_t encode_e8m0(double value, __nv_saturation_t saturate, cudaRoundMode rounding) {
    constexpr int kBias = 127;
    if (std::isnan(value)) return kE8m0Nan;
    if (value == 0) return 0;
    int exponent = kE8m0Nan;
    if (!std::isinf(value)) {
        const double mantissa = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
        const bool is_power = mantissa == 0.5;
        exponent += rounding == cudaRoundPosInf && !is_power ? kBias : kBias - 1;
    }
    if (exponent < 0) return 0;
    if (exponent > kE8m0Largest) return saturate == __NV_SATFINITE ? kE8m0Largest : kE8m0Nan;
    return static_cast<__nv_fp8_storage_t>(exponent);
}

inline float decode_e8m0(__nv_fp8_storage_t bits) {
    return bits == kE8m0Nan ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, bits - 127);
}

}  // namespace cuda_on_cpu

inline __nv_fp8_storage_t __nv_cvt_double_to_e8m0(double value, __nv_saturation_t saturate,
                                                  cudaRoundMode rounding) {
    return cuda_on_cpu::encode_e8m0(value, saturate, rounding);
}
inline __nv_fp8_storage_t __nv_cvt_float_to_e8m0(float value, __nv_saturation_t saturate,
                                                 cudaRoundMode rounding) {
    return cuda_on_cpu::encode_e8m0(static_cast<double>(value), saturate, rounding);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_e8m0(__nv_bfloat16_raw value, __nv_saturation_t saturate,
                                                       cudaRoundMode rounding) {
    return __nv_cvt_float_to_e8m0(__bfloat162float(value), saturate, rounding);
}
inline __nv_fp8x2_storage_t __nv_cvt_double2_to_e8m0x2(double2 pair, __nv_saturation_t saturate,
                                                       cudaRoundMode rounding) {
    return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_double_to_e8m0(pair.x, saturate, rounding) |
                                             __nv_cvt_double_to_e8m0(pair.y, saturate, rounding) << 8);
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_e8m0x2(float2 pair, __nv_saturation_t saturate,
                                                      cudaRoundMode rounding) {
    return __nv_cvt_double2_to_e8m0x2({pair.x, pair.y}, saturate, rounding);
}
inline __nv_fp8x2_storage_t __nv_cvt_bfloat162raw_to_e8m0x2(__nv_bfloat162_raw pair,
                                                            __nv_saturation_t saturate,
                                                            cudaRoundMode rounding) {
    return __nv_cvt_float2_to_e8m0x2(__bfloat1622float2(pair), saturate, rounding);
}
inline __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t bits) {
    return __nv_bfloat16(cuda_on_cpu::decode_e8m0(bits));
}
inline __nv_bfloat162_raw __nv_cvt_e8m0x2_to_bf162raw(__nv_fp8x2_storage_t pair) {
    return {__nv_cvt_e8m0_to_bf16raw(pair & 0xff).x, __nv_cvt_e8m0_to_bf16raw(pair >> 8).x};
}

// Converts as the other types do, rounding upwards and saturating at the largest power.
struct __nv_fp8_e8m0 {
    __nv_fp8_storage_t __x;

    __nv_fp8_e8m0() = default;
    explicit __nv_fp8_e8m0(double value)
        : __x(cuda_on_cpu::encode_e8m0(value, __NV_SATFINITE, cudaRoundPosInf)) {}
    explicit __nv_fp8_e8m0(float value) : __nv_fp8_e8m0(static_cast<double>(value)) {}
    explicit __nv_fp8_e8m0(__half value) : __nv_fp8_e8m0(static_cast<float>(value)) {}
    explicit __nv_fp8_e8m0(__nv_bfloat16 value) : __nv_fp8_e8m0(static_cast<float>(value)) {}
    template <std::integral Integer>
    explicit __nv_fp8_e8m0(Integer value) : __nv_fp8_e8m0(cuda_on_cpu::to_odd_double(value)) {}

    explicit operator float() const { return cuda_on_cpu::decode_e8m0(__x); }
    explicit operator double() const { return static_cast<double>(cuda_on_cpu::decode_e8m0(__x)); }
    explicit operator __half() const { return __half(cuda_on_cpu::decode_e8m0(__x)); }
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(cuda_on_cpu::decode_e8m0(__x)); }
};

// --- Two and four at a time ----------------------------------------------------------------------
// The first number is in the lowest byte.

namespace cuda_on_cpu {

template <class One>
One fp8_from_bits(unsigned bits) {
    One one;
    one.__x = static_cast<__nv_fp8_storage_t>(bits);
    return one;
}

template <class One>
struct Fp8x2 {
    __nv_fp8x2_storage_t __x;

    Fp8x2() = default;
    explicit Fp8x2(double2 pair)
        : __x(static_cast<__nv_fp8x2_storage_t>(One(pair.x).__x | One(pair.y).__x << 8)) {}
    explicit Fp8x2(float2 pair) : Fp8x2(double2{pair.x, pair.y}) {}
    explicit Fp8x2(__half2 pair) : Fp8x2(__half22float2(pair)) {}
    explicit Fp8x2(__nv_bfloat162 pair) : Fp8x2(__bfloat1622float2(pair)) {}

    explicit operator float2() const {
        return {static_cast<float>(fp8_from_bits<One>(__x)),
                static_cast<float>(fp8_from_bits<One>(__x >> 8))};
    }
    explicit operator __half2() const { return __float22half2_rn(static_cast<float2>(*this)); }
    explicit operator __nv_bfloat162() const { return __float22bfloat162_rn(static_cast<float2>(*this)); }
};

template <class One>
struct Fp8x4 {
    __nv_fp8x4_storage_t __x;

    Fp8x4() = default;
    explicit Fp8x4(double4 four)
        : __x(static_cast<__nv_fp8x4_storage_t>(Fp8x2<One>(double2{four.x, four.y}).__x) |
              static_cast<__nv_fp8x4_storage_t>(Fp8x2<One>(double2{four.z, four.w}).__x) << 16) {}
    explicit Fp8x4(float4 four) : Fp8x4(double4{four.x, four.y, four.z, four.w}) {}
    Fp8x4(__half2 low, __half2 high) : Fp8x4(__half22float2(low), __half22float2(high)) {}
    Fp8x4(__nv_bfloat162 low, __nv_bfloat162 high)
        : Fp8x4(__bfloat1622float2(low), __bfloat1622float2(high)) {}

    explicit operator float4() const {
        return {static_cast<float>(fp8_from_bits<One>(__x)), static_cast<float>(fp8_from_bits<One>(__x >> 8)),
                static_cast<float>(fp8_from_bits<One>(__x >> 16)),
                static_cast<float>(fp8_from_bits<One>(__x >> 24))};
    }

  private:
    Fp8x4(float2 low, float2 high) : Fp8x4(float4{low.x, low.y, high.x, high.y}) {}
};

}  // namespace cuda_on_cpu

struct __nv_fp8x2_e4m3 : cuda_on_cpu::Fp8x2<__nv_fp8_e4m3> {
    using Fp8x2::Fp8x2;
};
struct __nv_fp8x4_e4m3 : cuda_on_cpu::Fp8x4<__nv_fp8_e4m3> {
    using Fp8x4::Fp8x4;
};
struct __nv_fp8x2_e5m2 : cuda_on_cpu::Fp8x2<__nv_fp8_e5m2> {
    using Fp8x2::Fp8x2;
};
struct __nv_fp8x4_e5m2 : cuda_on_cpu::Fp8x4<__nv_fp8_e5m2> {
    using Fp8x4::Fp8x4;
};
struct __nv_fp8x2_e8m0 : cuda_on_cpu::Fp8x2<__nv_fp8_e8m0> {
    using Fp8x2::Fp8x2;
};
struct __nv_fp8x4_e8m0 : cuda_on_cpu::Fp8x4<__nv_fp8_e8m0> {
    using Fp8x4::Fp8x4;
};
