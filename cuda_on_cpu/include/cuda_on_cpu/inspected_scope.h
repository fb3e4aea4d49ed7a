// What inspected code announces of its next atomic access (inspector/hooks.cpp): that its scope is
// a block or a thread, or that the compiler tells whether its result is used. Between the
// announcement and the access no other thread may run. Elsewhere every scope is the whole system.
#pragma once

#if defined(CUDA_ON_CPU_INSPECT) && defined(__SANITIZE_THREAD__)

extern "C" void cuda_on_cpu_next_in_block();
extern "C" void cuda_on_cpu_next_in_thread();
extern "C" unsigned cuda_on_cpu_next_may_be_unused();
// `const`: the compiler drops the call where nothing uses its value.
extern "C" __attribute__((const)) unsigned long long cuda_on_cpu_used(unsigned long long value,
                                                                      unsigned number);

namespace cuda_on_cpu {

__attribute__((always_inline)) inline void next_atomic_in_block(bool in_block) {
    if (in_block) cuda_on_cpu_next_in_block();
}
__attribute__((always_inline)) inline void next_atomic_in_thread(bool in_thread) {
    if (in_thread) cuda_on_cpu_next_in_thread();
}

// An exchange without a use of its result only writes: its value passes through result_of_exchange,
// with the number that was returned before it.
__attribute__((always_inline)) inline unsigned next_atomic_may_be_unused() {
    return cuda_on_cpu_next_may_be_unused();
}
template <class T>
__attribute__((always_inline)) inline T result_of_exchange(T value, unsigned number) {
    static_assert(sizeof(T) <= sizeof(unsigned long long));
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    bits = cuda_on_cpu_used(bits, number);
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

}  // namespace cuda_on_cpu

#else

namespace cuda_on_cpu {

__attribute__((always_inline)) inline void next_atomic_in_block(bool) {}
__attribute__((always_inline)) inline void next_atomic_in_thread(bool) {}
__attribute__((always_inline)) inline unsigned next_atomic_may_be_unused() {
    return 0;
}
template <class T>
__attribute__((always_inline)) inline T result_of_exchange(T value, unsigned) {
    return value;
}

}  // namespace cuda_on_cpu

#endif
