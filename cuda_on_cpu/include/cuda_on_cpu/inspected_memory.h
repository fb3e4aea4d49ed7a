// In inspected code, memset, memcpy and memmove report their accesses (inspector/hooks.cpp),
// because the compiler instruments only loads and stores.
#pragma once

#if defined(CUDA_ON_CPU_INSPECT) && defined(__SANITIZE_THREAD__)

#include <cstring>

extern "C" {
void* memset(void* to, int value, std::size_t bytes) noexcept __asm__("cuda_on_cpu_memset");
void* memcpy(void* to, const void* from, std::size_t bytes) noexcept __asm__("cuda_on_cpu_memcpy");
void* memmove(void* to, const void* from, std::size_t bytes) noexcept __asm__("cuda_on_cpu_memmove");
}

#endif
