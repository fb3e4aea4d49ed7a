// 4-bit floating point: __nv_fp4_e2m1, with the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4 and 6. One
// number takes a byte; a pair is packed into one byte.
#pragma once

#include "cuda_on_cpu/narrow_float.h"

#define __CUDA_FP4_TYPES_EXIST__

using __nv_fp4_storage_t = unsigned char;
using __nv_fp4x2_storage_t = unsigned char;  // two of them, the first in the lower four bits
using __nv_fp4x4_storage_t = unsigned short;

enum __nv_fp4_interpretation_t { __NV_E2M1 };

inline __nv_fp4_storage_t __nv_cvt_double_to_fp4(double value, __nv_fp4_interpretation_t,
                                                 cudaRoundMode rounding) {
    return cuda_on_cpu::encode_narrow<cuda_on_cpu::E2m1>(value, rounding);
}
inline __half_raw __nv_cvt_fp4_to_halfraw(__nv_fp4_storage_t bits, __nv_fp4_interpretation_t) {
    return __half(cuda_on_cpu::decode_narrow<cuda_on_cpu::E2m1>(bits));
}
CUDA_ON_CPU_NARROW_CONVERSIONS(fp4, 4)

struct __nv_fp4_e2m1 : cuda_on_cpu::NarrowFloat<cuda_on_cpu::E2m1> {
    using NarrowFloat::NarrowFloat;
};
struct __nv_fp4x2_e2m1 : cuda_on_cpu::NarrowPair<__nv_fp4_e2m1, __nv_fp4x2_storage_t, 4> {
    using NarrowPair::NarrowPair;
};
struct __nv_fp4x4_e2m1 : cuda_on_cpu::NarrowFour<__nv_fp4_e2m1, __nv_fp4x4_storage_t, 4> {
    using NarrowFour::NarrowFour;
};
