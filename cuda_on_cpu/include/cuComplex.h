// Complex numbers as pairs of float or double, and their arithmetic.
#pragma once

#include <math.h>

#include "cuda_on_cpu/language.h"
#include "vector_types.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

__host__ __device__ static inline cuFloatComplex make_cuFloatComplex(float x, float y) {
    return cuFloatComplex{x, y};
}
__host__ __device__ static inline float cuCrealf(cuFloatComplex a) {
    return a.x;
}
__host__ __device__ static inline float cuCimagf(cuFloatComplex a) {
    return a.y;
}
__host__ __device__ static inline cuFloatComplex cuConjf(cuFloatComplex a) {
    return cuFloatComplex{a.x, -a.y};
}
__host__ __device__ static inline cuFloatComplex cuCaddf(cuFloatComplex a, cuFloatComplex b) {
    return cuFloatComplex{a.x + b.x, a.y + b.y};
}
__host__ __device__ static inline cuFloatComplex cuCsubf(cuFloatComplex a, cuFloatComplex b) {
    return cuFloatComplex{a.x - b.x, a.y - b.y};
}
__host__ __device__ static inline cuFloatComplex cuCmulf(cuFloatComplex a, cuFloatComplex b) {
    return cuFloatComplex{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
// Both operands are scaled by the size of the divisor, so that its square neither overflows nor
// underflows.
__host__ __device__ static inline cuFloatComplex cuCdivf(cuFloatComplex a, cuFloatComplex b) {
    const float scale = 1 / (fabsf(b.x) + fabsf(b.y));
    const cuFloatComplex n = cuFloatComplex{a.x * scale, a.y * scale};
    const cuFloatComplex d = cuFloatComplex{b.x * scale, b.y * scale};
    const float inverse = 1 / (d.x * d.x + d.y * d.y);
    return cuFloatComplex{(n.x * d.x + n.y * d.y) * inverse, (n.y * d.x - n.x * d.y) * inverse};
}
__host__ __device__ static inline float cuCabsf(cuFloatComplex a) {
    return hypotf(a.x, a.y);
}
__host__ __device__ static inline cuFloatComplex cuCfmaf(cuFloatComplex a, cuFloatComplex b,
                                                         cuFloatComplex c) {
    return cuCaddf(cuCmulf(a, b), c);
}

__host__ __device__ static inline cuDoubleComplex make_cuDoubleComplex(double x, double y) {
    return cuDoubleComplex{x, y};
}
__host__ __device__ static inline double cuCreal(cuDoubleComplex a) {
    return a.x;
}
__host__ __device__ static inline double cuCimag(cuDoubleComplex a) {
    return a.y;
}
__host__ __device__ static inline cuDoubleComplex cuConj(cuDoubleComplex a) {
    return cuDoubleComplex{a.x, -a.y};
}
__host__ __device__ static inline cuDoubleComplex cuCadd(cuDoubleComplex a, cuDoubleComplex b) {
    return cuDoubleComplex{a.x + b.x, a.y + b.y};
}
__host__ __device__ static inline cuDoubleComplex cuCsub(cuDoubleComplex a, cuDoubleComplex b) {
    return cuDoubleComplex{a.x - b.x, a.y - b.y};
}
__host__ __device__ static inline cuDoubleComplex cuCmul(cuDoubleComplex a, cuDoubleComplex b) {
    return cuDoubleComplex{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
// Both operands are scaled by the size of the divisor, so that its square neither overflows nor
// underflows.
__host__ __device__ static inline cuDoubleComplex cuCdiv(cuDoubleComplex a, cuDoubleComplex b) {
    const double scale = 1 / (fabs(b.x) + fabs(b.y));
    const cuDoubleComplex n = cuDoubleComplex{a.x * scale, a.y * scale};
    const cuDoubleComplex d = cuDoubleComplex{b.x * scale, b.y * scale};
    const double inverse = 1 / (d.x * d.x + d.y * d.y);
    return cuDoubleComplex{(n.x * d.x + n.y * d.y) * inverse, (n.y * d.x - n.x * d.y) * inverse};
}
__host__ __device__ static inline double cuCabs(cuDoubleComplex a) {
    return hypot(a.x, a.y);
}
__host__ __device__ static inline cuDoubleComplex cuCfma(cuDoubleComplex a, cuDoubleComplex b,
                                                         cuDoubleComplex c) {
    return cuCadd(cuCmul(a, b), c);
}

__host__ __device__ static inline cuComplex make_cuComplex(float x, float y) {
    return cuComplex{x, y};
}
__host__ __device__ static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) {
    return cuDoubleComplex{a.x, a.y};
}
__host__ __device__ static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
    return cuFloatComplex{(float)a.x, (float)a.y};
}
