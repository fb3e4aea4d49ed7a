// In inspected code, memset, memcpy and memmove report their accesses (inspector/hooks.cpp),
// because the compiler instruments only loads and stores. Copies of these constant sizes become
// loads and stores; others would be expanded after the instrumentation.
#pragma once

#if defined(CUDA_ON_CPU_INSPECT) && defined(__SANITIZE_THREAD__)

#include <cstring>

extern "C" {
void* cuda_on_cpu_memset(void* to, int value, std::size_t bytes) noexcept;
void* cuda_on_cpu_memcpy(void* to, const void* from, std::size_t bytes) noexcept;
void* cuda_on_cpu_memmove(void* to, const void* from, std::size_t bytes) noexcept;

#define CUDA_ON_CPU_INLINED inline __attribute__((gnu_inline, always_inline, artificial))

extern CUDA_ON_CPU_INLINED void* memset(void* to, int value, std::size_t bytes) noexcept {
    return cuda_on_cpu_memset(to, value, bytes);
}
extern CUDA_ON_CPU_INLINED void* memcpy(void* to, const void* from, std::size_t bytes) noexcept {
    if (__builtin_constant_p(bytes) && (bytes & (bytes - 1)) == 0 && bytes <= 16)
        return __builtin_memcpy(to, from, bytes);
    return cuda_on_cpu_memcpy(to, from, bytes);
}
extern CUDA_ON_CPU_INLINED void* memmove(void* to, const void* from, std::size_t bytes) noexcept {
    if (__builtin_constant_p(bytes) && (bytes & (bytes - 1)) == 0 && bytes <= 16)
        return __builtin_memmove(to, from, bytes);
    return cuda_on_cpu_memmove(to, from, bytes);
}

#undef CUDA_ON_CPU_INLINED
}

#endif
