// Floating point of 8 bits: __nv_fp8_e4m3 (numbers up to 448, no Inf) and __nv_fp8_e5m2 (up to
// 57344). They are for storing and for matrix products: conversions, and no arithmetic.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <concepts>

#include "cuda_on_cpu/small_float.h"

using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;  // two of them, the first in the lower byte

// What becomes of a number beyond the largest: that one, or Inf, in E4M3 NaN.
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

// Of a pair, the first number becomes the lower byte.
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
