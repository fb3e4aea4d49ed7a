// Atomic functions and memory fences. Blocks run on different OS threads, so the functions use the
// CPU's atomic operations. As on a GPU, they do not order other memory accesses; that needs a
// fence.
//
// An integer atomic that changed nothing (a failed compare-and-swap, a lock that is already taken,
// a flag polled with atomicAdd(&flag, 0)) may belong to a thread that waits for another: it calls
// spin_hint(). Minimum and maximum usually change nothing, so they call poll() instead.
//
// All are inlined, so that the source line of an atomic access is the lesson's.
#pragma once

#include <vector_types.h>

#include <concepts>
#include <type_traits>

#include "cuda_on_cpu/atomic_word.h"
#include "cuda_on_cpu/inspected_scope.h"
#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/spin_hint.h"
#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

template <class T, class... Types>
concept one_of = (std::same_as<T, Types> || ...);

template <class T>
concept word = one_of<T, int, unsigned int, unsigned long long>;

template <class T>
concept ordered_word = word<T> || std::same_as<T, long long>;

template <class T>
concept two_words = sizeof(T) == 16 && alignof(T) >= 16 && std::is_trivially_copyable_v<T>;

// For 16 bytes, aligned to 16. They return whether the bytes have changed.
bool exchange_16_bytes(void* address, const void* value, void* old);
bool compare_and_swap_16_bytes(void* address, const void* expected, const void* desired, void* old);

// Loads and stores of 16 bytes, aligned to 16. An inspection sees only those that the compiler
// instruments.
template <class T>
__forceinline__ T load_16_bytes(const T* address, [[maybe_unused]] MemoryOrder order = MemoryOrder::relaxed) {
    static_assert(sizeof(T) == 16 && std::is_trivially_copyable_v<T>);
    T found;
#ifdef __SANITIZE_THREAD__
    __extension__ using Bits = unsigned __int128;
    const Bits bits = __atomic_load_n(reinterpret_cast<const Bits*>(address), static_cast<int>(order));
    __builtin_memcpy(&found, &bits, sizeof found);
#else
    const unsigned long long zero[2] = {};
    compare_and_swap_16_bytes(const_cast<T*>(address), zero, zero, &found);
#endif
    return found;
}
template <class T>
__forceinline__ void store_16_bytes(T* address, const T& value,
                                    [[maybe_unused]] MemoryOrder order = MemoryOrder::relaxed) {
    static_assert(sizeof(T) == 16 && std::is_trivially_copyable_v<T>);
#ifdef __SANITIZE_THREAD__
    __extension__ using Bits = unsigned __int128;
    Bits bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    __atomic_store_n(reinterpret_cast<Bits*>(address), bits, static_cast<int>(order));
#else
    T old;
    exchange_16_bytes(address, &value, &old);
#endif
}

// *address = change(*address) in one step; returns what was there before.
template <class T, class Change>
__forceinline__ T fetch_and_change(T* address, Change change, MemoryOrder order = MemoryOrder::relaxed) {
    AtomicWord<T> target(*address);
    T old = target.load(MemoryOrder::relaxed);
    T now = change(old);
    while (!target.compare_exchange_weak(old, now, order))
        now = change(old);
    if (old == now && !result_unused) poll();
    return old;
}

// A thread that does not use the result cannot be waiting for another thread.
template <class T>
__forceinline__ T hint_if_unchanged(T old, T now) {
    if (old == now && !result_unused) spin_hint();
    return old;
}

template <class T>
T put_off_sum(T* address, T value) {
    using Wide = std::conditional_t<std::is_integral_v<T>, unsigned long long, double>;
    put_off([](void* place, Wide later) { *static_cast<T*>(place) += static_cast<T>(later); }, address,
            static_cast<Wide>(value));
    return T(0);
}

}  // namespace cuda_on_cpu

// ---- Arithmetic ----------------------------------------------------------------------------------------------------

template <cuda_on_cpu::word T>
__forceinline__ T atomicAdd(T* address, std::type_identity_t<T> value) {
    if (cuda_on_cpu::note(cuda_on_cpu::AtomicKind::sum, address))
        return cuda_on_cpu::put_off_sum(address, value);
    const T old = cuda_on_cpu::AtomicWord<T>(*address).fetch_add(value, cuda_on_cpu::MemoryOrder::relaxed);
    if (value == 0 && !cuda_on_cpu::result_unused) cuda_on_cpu::spin_hint();
    return old;
}

template <class T>
requires cuda_on_cpu::one_of<T, float, double> __forceinline__ T atomicAdd(T* address,
                                                                           std::type_identity_t<T> value) {
    // Only a copy of the process (the order check) reads the old sum here, so an inspection sees no
    // extra access.
    if (cuda_on_cpu::atomics_are_noted && cuda_on_cpu::note(cuda_on_cpu::AtomicKind::float_sum, address,
                                                            __builtin_fabs(static_cast<double>(*address)) +
                                                                __builtin_fabs(static_cast<double>(value))))
        return cuda_on_cpu::put_off_sum(address, value);
    return cuda_on_cpu::fetch_and_change(address, [value](T old) { return old + value; });
}

// Each component is added atomically; the vector as a whole is not.
inline float2 atomicAdd(float2* address, float2 value) {
    return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
inline float4 atomicAdd(float4* address, float4 value) {
    return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y), atomicAdd(&address->z, value.z),
            atomicAdd(&address->w, value.w)};
}

template <class T>
requires cuda_on_cpu::one_of<T, int, unsigned int> __forceinline__ T
atomicSub(T* address, std::type_identity_t<T> value) {
    if (cuda_on_cpu::note(cuda_on_cpu::AtomicKind::sum, address))
        return cuda_on_cpu::put_off_sum(address, T(0) - value);
    const T old = cuda_on_cpu::AtomicWord<T>(*address).fetch_sub(value, cuda_on_cpu::MemoryOrder::relaxed);
    if (value == 0 && !cuda_on_cpu::result_unused) cuda_on_cpu::spin_hint();
    return old;
}

template <cuda_on_cpu::ordered_word T>
__forceinline__ T atomicMin(T* address, std::type_identity_t<T> value) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::extreme, address);
    return cuda_on_cpu::fetch_and_change(address, [value](T old) { return value < old ? value : old; });
}

template <cuda_on_cpu::ordered_word T>
__forceinline__ T atomicMax(T* address, std::type_identity_t<T> value) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::extreme, address);
    return cuda_on_cpu::fetch_and_change(address, [value](T old) { return value > old ? value : old; });
}

// Counts up to `limit`, then restarts at 0.
__forceinline__ unsigned int atomicInc(unsigned int* address, unsigned int limit) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::ordered, address);
    return cuda_on_cpu::fetch_and_change(address,
                                         [limit](unsigned int old) { return old >= limit ? 0 : old + 1; });
}

// Counts down to 0, then restarts at `limit`.
__forceinline__ unsigned int atomicDec(unsigned int* address, unsigned int limit) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::ordered, address);
    return cuda_on_cpu::fetch_and_change(
        address, [limit](unsigned int old) { return old == 0 || old > limit ? limit : old - 1; });
}

// ---- Bits ----------------------------------------------------------------------------------------------------------

template <cuda_on_cpu::ordered_word T>
__forceinline__ T atomicAnd(T* address, std::type_identity_t<T> value) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::extreme, address);
    const T old = cuda_on_cpu::AtomicWord<T>(*address).fetch_and(value, cuda_on_cpu::MemoryOrder::relaxed);
    return cuda_on_cpu::hint_if_unchanged<T>(old, old & value);
}

template <cuda_on_cpu::ordered_word T>
__forceinline__ T atomicOr(T* address, std::type_identity_t<T> value) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::extreme, address);
    const T old = cuda_on_cpu::AtomicWord<T>(*address).fetch_or(value, cuda_on_cpu::MemoryOrder::relaxed);
    return cuda_on_cpu::hint_if_unchanged<T>(old, old | value);
}

template <cuda_on_cpu::ordered_word T>
__forceinline__ T atomicXor(T* address, std::type_identity_t<T> value) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::ordered, address);
    const T old = cuda_on_cpu::AtomicWord<T>(*address).fetch_xor(value, cuda_on_cpu::MemoryOrder::relaxed);
    return cuda_on_cpu::hint_if_unchanged<T>(old, old ^ value);
}

// ---- Exchange ------------------------------------------------------------------------------------------------------

template <class T>
requires(cuda_on_cpu::word<T> || std::same_as<T, float>) __forceinline__ T
    atomicExch(T* address, std::type_identity_t<T> value) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::ordered, address);
    const unsigned number = cuda_on_cpu::next_atomic_may_be_unused();
    const T old = cuda_on_cpu::AtomicWord<T>(*address).exchange(value, cuda_on_cpu::MemoryOrder::relaxed);
    return cuda_on_cpu::result_of_exchange(cuda_on_cpu::hint_if_unchanged<T>(old, value), number);
}

template <class T>
requires(cuda_on_cpu::word<T> || std::same_as<T, unsigned short>) __forceinline__ T
    atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::ordered, address);
    T old = expected;
    cuda_on_cpu::AtomicWord<T>(*address).compare_exchange_strong(old, desired,
                                                                 cuda_on_cpu::MemoryOrder::relaxed);
    const T now = old == expected ? desired : old;
    return cuda_on_cpu::hint_if_unchanged<T>(old, now);
}

// Exchanges of 16 bytes, aligned to 16: through pointers, and for types of that size.
inline void __u128AtomicExch(void* address, void* value, void* old) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::ordered, address);
    if (!cuda_on_cpu::exchange_16_bytes(address, value, old)) cuda_on_cpu::spin_hint();
}
inline void __u128AtomicCAS(void* address, void* expected, void* desired, void* old) {
    cuda_on_cpu::note(cuda_on_cpu::AtomicKind::ordered, address);
    if (!cuda_on_cpu::compare_and_swap_16_bytes(address, expected, desired, old)) cuda_on_cpu::spin_hint();
}

template <cuda_on_cpu::two_words T>
__forceinline__ T atomicExch(T* address, std::type_identity_t<T> value) {
    T old;
    __u128AtomicExch(address, &value, &old);
    return old;
}
template <cuda_on_cpu::two_words T>
__forceinline__ T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
    T old;
    __u128AtomicCAS(address, &expected, &desired, &old);
    return old;
}

// ---- Scopes: on the CPU there is only one, the whole system; an inspection knows those of a block ------------------

#define CUDA_ON_CPU_SCOPED(function)                                                 \
    template <class T>                                                               \
    requires requires(T * address, T value) {                                        \
        function(address, value);                                                    \
    }                                                                                \
    __forceinline__ T function##_block(T* address, std::type_identity_t<T> value) {  \
        cuda_on_cpu::next_atomic_in_block(true);                                     \
        return function(address, value);                                             \
    }                                                                                \
    template <class T>                                                               \
    requires requires(T * address, T value) {                                        \
        function(address, value);                                                    \
    }                                                                                \
    __forceinline__ T function##_system(T* address, std::type_identity_t<T> value) { \
        cuda_on_cpu::share_with_host();                                              \
        return function(address, value);                                             \
    }

CUDA_ON_CPU_SCOPED(atomicAdd)
CUDA_ON_CPU_SCOPED(atomicSub)
CUDA_ON_CPU_SCOPED(atomicMin)
CUDA_ON_CPU_SCOPED(atomicMax)
CUDA_ON_CPU_SCOPED(atomicInc)
CUDA_ON_CPU_SCOPED(atomicDec)
CUDA_ON_CPU_SCOPED(atomicAnd)
CUDA_ON_CPU_SCOPED(atomicOr)
CUDA_ON_CPU_SCOPED(atomicXor)
CUDA_ON_CPU_SCOPED(atomicExch)
#undef CUDA_ON_CPU_SCOPED

template <class T>
__forceinline__ T atomicCAS_block(T* address, std::type_identity_t<T> expected,
                                  std::type_identity_t<T> desired) {
    cuda_on_cpu::next_atomic_in_block(true);
    return atomicCAS(address, expected, desired);
}
template <class T>
__forceinline__ T atomicCAS_system(T* address, std::type_identity_t<T> expected,
                                   std::type_identity_t<T> desired) {
    cuda_on_cpu::share_with_host();
    return atomicCAS(address, expected, desired);
}

#define CUDA_ON_CPU_SCOPED_WIDE(scope)                                                            \
    inline void __u128AtomicExch##scope(void* address, void* value, void* old) {                  \
        __u128AtomicExch(address, value, old);                                                    \
    }                                                                                             \
    inline void __u128AtomicCAS##scope(void* address, void* expected, void* desired, void* old) { \
        __u128AtomicCAS(address, expected, desired, old);                                         \
    }
CUDA_ON_CPU_SCOPED_WIDE(_block)
CUDA_ON_CPU_SCOPED_WIDE(_system)
#undef CUDA_ON_CPU_SCOPED_WIDE

// ---- Fences --------------------------------------------------------------------------------------------------------

inline void __threadfence() {
    cuda_on_cpu::atomic_fence(cuda_on_cpu::MemoryOrder::seq_cst);
}
// Weaker than the other fences: an inspection recognises it by its memory order.
inline void __threadfence_block() {
    cuda_on_cpu::atomic_fence(cuda_on_cpu::MemoryOrder::acq_rel);
}
inline void __threadfence_system() {
    cuda_on_cpu::share_with_host();
    cuda_on_cpu::atomic_fence(cuda_on_cpu::MemoryOrder::seq_cst);
}
