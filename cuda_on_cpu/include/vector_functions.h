// make_int2(x, y) and related functions, one for each vector of vector_types.h.
#pragma once

#define __VECTOR_FUNCTIONS_H__

#include <vector_types.h>

#define CUDA_ON_CPU_MAKE_4(Vector, Scalar)                                   \
    constexpr Vector make_##Vector(Scalar x, Scalar y, Scalar z, Scalar w) { \
        return {x, y, z, w};                                                 \
    }

#define CUDA_ON_CPU_MAKE(Name, Scalar)                               \
    constexpr Name##1 make_##Name##1(Scalar x) {                     \
        return {x};                                                  \
    }                                                                \
    constexpr Name##2 make_##Name##2(Scalar x, Scalar y) {           \
        return {x, y};                                               \
    }                                                                \
    constexpr Name##3 make_##Name##3(Scalar x, Scalar y, Scalar z) { \
        return {x, y, z};                                            \
    }                                                                \
    CUDA_ON_CPU_MAKE_4(Name##4, Scalar)

CUDA_ON_CPU_MAKE(char, signed char)
CUDA_ON_CPU_MAKE(uchar, unsigned char)
CUDA_ON_CPU_MAKE(short, short)
CUDA_ON_CPU_MAKE(ushort, unsigned short)
CUDA_ON_CPU_MAKE(int, int)
CUDA_ON_CPU_MAKE(uint, unsigned int)
CUDA_ON_CPU_MAKE(long, long)
CUDA_ON_CPU_MAKE(ulong, unsigned long)
CUDA_ON_CPU_MAKE(longlong, long long)
CUDA_ON_CPU_MAKE(ulonglong, unsigned long long)
CUDA_ON_CPU_MAKE(float, float)
CUDA_ON_CPU_MAKE(double, double)

CUDA_ON_CPU_MAKE_4(long4_16a, long)
CUDA_ON_CPU_MAKE_4(long4_32a, long)
CUDA_ON_CPU_MAKE_4(ulong4_16a, unsigned long)
CUDA_ON_CPU_MAKE_4(ulong4_32a, unsigned long)
CUDA_ON_CPU_MAKE_4(longlong4_16a, long long)
CUDA_ON_CPU_MAKE_4(longlong4_32a, long long)
CUDA_ON_CPU_MAKE_4(ulonglong4_16a, unsigned long long)
CUDA_ON_CPU_MAKE_4(ulonglong4_32a, unsigned long long)
CUDA_ON_CPU_MAKE_4(double4_16a, double)
CUDA_ON_CPU_MAKE_4(double4_32a, double)
#undef CUDA_ON_CPU_MAKE
#undef CUDA_ON_CPU_MAKE_4
