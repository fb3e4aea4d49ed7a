// CUDA's short vectors: char1 .. double4, with the sizes and alignments a GPU gives them, and dim3.
// They are plain aggregates: no constructors, no operators.
#pragma once

#define __VECTOR_TYPES_H__

// The four vectors of one scalar type. Vectors of two and four components are aligned to their
// whole size, so that one access moves all components; vectors of three components are aligned like
// their scalar. No vector is aligned to more than 16 bytes.
#define CUDA_ON_CPU_VECTORS(Name, Scalar)                                                    \
    struct Name##1 {                                                                         \
        Scalar x;                                                                            \
    };                                                                                       \
    struct __attribute__((aligned(2 * sizeof(Scalar)))) Name##2 {                            \
        Scalar x, y;                                                                         \
    };                                                                                       \
    struct Name##3 {                                                                         \
        Scalar x, y, z;                                                                      \
    };                                                                                       \
    struct __attribute__((aligned(sizeof(Scalar) == 8 ? 16 : 4 * sizeof(Scalar)))) Name##4 { \
        Scalar x, y, z, w;                                                                   \
    };                                                                                       \
    CUDA_ON_CPU_TYPE(Name##1) CUDA_ON_CPU_TYPE(Name##2) CUDA_ON_CPU_TYPE(Name##3) CUDA_ON_CPU_TYPE(Name##4)

#ifdef __cplusplus
#define CUDA_ON_CPU_TYPE(name)
#else
#define CUDA_ON_CPU_TYPE(name) typedef struct name name;
#endif

CUDA_ON_CPU_VECTORS(char, signed char)
CUDA_ON_CPU_VECTORS(uchar, unsigned char)
CUDA_ON_CPU_VECTORS(short, short)
CUDA_ON_CPU_VECTORS(ushort, unsigned short)
CUDA_ON_CPU_VECTORS(int, int)
CUDA_ON_CPU_VECTORS(uint, unsigned int)
CUDA_ON_CPU_VECTORS(long, long)
CUDA_ON_CPU_VECTORS(ulong, unsigned long)
CUDA_ON_CPU_VECTORS(longlong, long long)
CUDA_ON_CPU_VECTORS(ulonglong, unsigned long long)
CUDA_ON_CPU_VECTORS(float, float)
CUDA_ON_CPU_VECTORS(double, double)
#undef CUDA_ON_CPU_VECTORS

// CUDA 13's names for the 32-byte vectors, which include the alignment.
#define CUDA_ON_CPU_ALIGNED_VECTORS(Name, Scalar)     \
    typedef struct Name##4 Name##4_16a;               \
    struct __attribute__((aligned(32))) Name##4_32a { \
        Scalar x, y, z, w;                            \
    };                                                \
    CUDA_ON_CPU_TYPE(Name##4_32a)

CUDA_ON_CPU_ALIGNED_VECTORS(long, long)
CUDA_ON_CPU_ALIGNED_VECTORS(ulong, unsigned long)
CUDA_ON_CPU_ALIGNED_VECTORS(longlong, long long)
CUDA_ON_CPU_ALIGNED_VECTORS(ulonglong, unsigned long long)
CUDA_ON_CPU_ALIGNED_VECTORS(double, double)
#undef CUDA_ON_CPU_ALIGNED_VECTORS
#undef CUDA_ON_CPU_TYPE

// The extent of a grid or of a block; missing components are 1.
struct dim3 {
    unsigned int x, y, z;

#ifdef __cplusplus
    constexpr dim3(unsigned int extent_x = 1, unsigned int extent_y = 1, unsigned int extent_z = 1)
        : x(extent_x), y(extent_y), z(extent_z) {}
    constexpr dim3(uint3 extent) : x(extent.x), y(extent.y), z(extent.z) {}
    constexpr operator uint3() const {
        return {x, y, z};
    }
#endif
};
typedef struct dim3 dim3;
