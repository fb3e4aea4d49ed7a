// 6-bit floating point: __nv_fp6_e2m3 (numbers up to 7.5) and __nv_fp6_e3m2 (up to 28). Each number
// takes a byte.
#pragma once

#include "cuda_on_cpu/narrow_float.h"

#define __CUDA_FP6_TYPES_EXIST__

using __nv_fp6_storage_t = unsigned char;
using __nv_fp6x2_storage_t = unsigned short;  // two of them, the first in the lower byte
using __nv_fp6x4_storage_t = unsigned int;

enum __nv_fp6_interpretation_t { __NV_E2M3, __NV_E3M2 };

inline __nv_fp6_storage_t __nv_cvt_double_to_fp6(double value, __nv_fp6_interpretation_t format,
                                                 cudaRoundMode rounding) {
    return format == __NV_E2M3 ? cuda_on_cpu::encode_narrow<cuda_on_cpu::E2m3>(value, rounding)
                               : cuda_on_cpu::encode_narrow<cuda_on_cpu::E3m2>(value, rounding);
}
inline __half_raw __nv_cvt_fp6_to_halfraw(__nv_fp6_storage_t bits, __nv_fp6_interpretation_t format) {
    return __half(format == __NV_E2M3 ? cuda_on_cpu::decode_narrow<cuda_on_cpu::E2m3>(bits)
                                      : cuda_on_cpu::decode_narrow<cuda_on_cpu::E3m2>(bits));
}
CUDA_ON_CPU_NARROW_CONVERSIONS(fp6, 8)

struct __nv_fp6_e2m3 : cuda_on_cpu::NarrowFloat<cuda_on_cpu::E2m3> {
    using NarrowFloat::NarrowFloat;
};
struct __nv_fp6x2_e2m3 : cuda_on_cpu::NarrowPair<__nv_fp6_e2m3, __nv_fp6x2_storage_t, 8> {
    using NarrowPair::NarrowPair;
};
struct __nv_fp6x4_e2m3 : cuda_on_cpu::NarrowFour<__nv_fp6_e2m3, __nv_fp6x4_storage_t, 8> {
    using NarrowFour::NarrowFour;
};
struct __nv_fp6_e3m2 : cuda_on_cpu::NarrowFloat<cuda_on_cpu::E3m2> {
    using NarrowFloat::NarrowFloat;
};
struct __nv_fp6x2_e3m2 : cuda_on_cpu::NarrowPair<__nv_fp6_e3m2, __nv_fp6x2_storage_t, 8> {
    using NarrowPair::NarrowPair;
};
struct __nv_fp6x4_e3m2 : cuda_on_cpu::NarrowFour<__nv_fp6_e3m2, __nv_fp6x4_storage_t, 8> {
    using NarrowFour::NarrowFour;
};
