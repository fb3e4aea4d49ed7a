// musl declares fmaxf and fminf without noexcept, with which cuda_on_cpu/math.h defines them.
#ifndef CUDA_ON_CPU_WASM_MATH_H
#define CUDA_ON_CPU_WASM_MATH_H
#ifdef __cplusplus

extern "C" float fmaxf_of_musl(float, float) __asm__("fmaxf");
extern "C" float fminf_of_musl(float, float) __asm__("fminf");
#define fmaxf fmaxf_of_musl
#define fminf fminf_of_musl
#include_next <math.h>
#undef fmaxf
#undef fminf
extern "C" float fmaxf(float, float) noexcept;
extern "C" float fminf(float, float) noexcept;

#else
#include_next <math.h>
#endif
#endif
