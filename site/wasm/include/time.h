// musl declares clock() without noexcept, with which cuda_on_cpu defines it for kernels.
#ifndef CUDA_ON_CPU_WASM_TIME_H
#define CUDA_ON_CPU_WASM_TIME_H
#ifdef __cplusplus

#define clock clock_of_musl
#include_next <time.h>
#undef clock
extern "C" clock_t clock() noexcept;

#else
#include_next <time.h>
#endif
#endif
