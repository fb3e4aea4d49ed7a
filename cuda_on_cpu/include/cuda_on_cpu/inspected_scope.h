// Inspected code announces an atomic access whose scope is a block (inspector/hooks.cpp). Between
// the announcement and the access no other thread may run. Elsewhere every scope is the whole
// system.
#pragma once

#if defined(CUDA_ON_CPU_INSPECT) && defined(__SANITIZE_THREAD__)

extern "C" void cuda_on_cpu_next_in_block();

namespace cuda_on_cpu {

__attribute__((always_inline)) inline void next_atomic_in_block(bool in_block) {
    if (in_block) cuda_on_cpu_next_in_block();
}

}  // namespace cuda_on_cpu

#else

namespace cuda_on_cpu {

__attribute__((always_inline)) inline void next_atomic_in_block(bool) {}

}  // namespace cuda_on_cpu

#endif
