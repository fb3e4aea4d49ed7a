// The atomic functions of CUDA 12.8 that take a memory order and a scope (__nv_atomic_...). On the
// CPU every scope is the whole system; an inspection knows those of a block.
//
// A load, or an operation that changed nothing, may belong to a thread that waits for another: it
// calls spin_hint(), as the operations of <cuda/atomic> do.
#pragma once

#include <type_traits>

#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/spin_hint.h"

#define __CUDACC_DEVICE_ATOMIC_BUILTINS__

enum : int {
    __NV_ATOMIC_RELAXED,
    __NV_ATOMIC_CONSUME,
    __NV_ATOMIC_ACQUIRE,
    __NV_ATOMIC_RELEASE,
    __NV_ATOMIC_ACQ_REL,
    __NV_ATOMIC_SEQ_CST
};
enum : int {
    __NV_THREAD_SCOPE_THREAD,
    __NV_THREAD_SCOPE_BLOCK,
    __NV_THREAD_SCOPE_CLUSTER,
    __NV_THREAD_SCOPE_DEVICE,
    __NV_THREAD_SCOPE_SYSTEM
};

namespace cuda_on_cpu {

// The memory order of an operation: a constant, which the compiler checks.
struct AtomicOrder {
    MemoryOrder value;
    consteval AtomicOrder(int order) : value(static_cast<MemoryOrder>(order)) {
        if (order < __NV_ATOMIC_RELAXED || order > __NV_ATOMIC_SEQ_CST)
            throw "the memory order is not one of __NV_ATOMIC_...";
    }
};
struct AtomicLoadOrder : AtomicOrder {
    consteval AtomicLoadOrder(int order) : AtomicOrder(order) {
        if (order == __NV_ATOMIC_RELEASE || order == __NV_ATOMIC_ACQ_REL)
            throw "the memory order of a load cannot be release or acq_rel";
    }
};
struct AtomicStoreOrder : AtomicOrder {
    consteval AtomicStoreOrder(int order) : AtomicOrder(order) {
        if (order == __NV_ATOMIC_CONSUME || order == __NV_ATOMIC_ACQUIRE || order == __NV_ATOMIC_ACQ_REL)
            throw "the memory order of a store cannot be consume, acquire or acq_rel";
    }
};
struct AtomicScope {
    int value;
    consteval AtomicScope(int scope = __NV_THREAD_SCOPE_SYSTEM) : value(scope) {
        if (scope < __NV_THREAD_SCOPE_THREAD || scope > __NV_THREAD_SCOPE_SYSTEM)
            throw "the scope is not one of __NV_THREAD_SCOPE_...";
    }
};

// Announces the scope of the access that follows at once.
__forceinline__ void announce(AtomicScope scope) {
    next_atomic_in_block(scope.value == __NV_THREAD_SCOPE_BLOCK);
    next_atomic_in_thread(scope.value == __NV_THREAD_SCOPE_THREAD);
}

// The stronger one of the two orders of a compare-and-exchange applies.
constexpr MemoryOrder stronger(MemoryOrder success, MemoryOrder failure) {
    const bool acquires = success == MemoryOrder::acquire || failure == MemoryOrder::acquire;
    const bool releases = success == MemoryOrder::release || failure == MemoryOrder::release;
    if (acquires && releases) return MemoryOrder::acq_rel;
    return success > failure ? success : failure;
}

// An operation on a T is performed on an unsigned integer of the same size.
template <std::size_t kSize>
struct AtomicBits;
template <>
struct AtomicBits<1> {
    using type = unsigned char;
};
template <>
struct AtomicBits<2> {
    using type = unsigned short;
};
template <>
struct AtomicBits<4> {
    using type = unsigned int;
};
template <>
struct AtomicBits<8> {
    using type = unsigned long long;
};
template <>
struct AtomicBits<16> {
    struct type {
        alignas(16) unsigned long long halves[2];
    };
};

template <class T>
__forceinline__ auto& bits_of(T* address) {
    using Value = std::remove_cv_t<T>;
    static_assert(std::is_trivially_copyable_v<Value>,
                  "an atomic function needs a type that is trivially copyable");
    static_assert(sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0,
                  "an atomic function needs a type of 1, 2, 4, 8 or 16 bytes");
    return *reinterpret_cast<typename AtomicBits<sizeof(T)>::type*>(const_cast<Value*>(address));
}

template <class Bits>
__forceinline__ Bits atomic_load(Bits& place, MemoryOrder order, AtomicScope scope) {
    spin_hint();
    announce(scope);
    if constexpr (sizeof(Bits) == 16) {
        return load_16_bytes(&place, order);
    } else {
        return AtomicWord<Bits>(place).load(order);
    }
}

template <class Bits>
__forceinline__ void atomic_store(Bits& place, Bits value, MemoryOrder order, AtomicScope scope) {
    announce(scope);
    if constexpr (sizeof(Bits) == 16) {
        store_16_bytes(&place, value, order);
    } else {
        AtomicWord<Bits>(place).store(value, order);
    }
}

template <class Bits>
__forceinline__ Bits atomic_exchange(Bits& place, Bits value, MemoryOrder order, AtomicScope scope) {
    static_assert(sizeof(Bits) >= 4, "an atomic exchange needs a type of 4, 8 or 16 bytes");
    note(AtomicKind::ordered, &place);
    if constexpr (sizeof(Bits) == 16) {
        Bits old;
        if (!exchange_16_bytes(&place, &value, &old)) spin_hint();
        return old;
    } else {
        announce(scope);
        const unsigned number = next_atomic_may_be_unused();
        const Bits old = AtomicWord<Bits>(place).exchange(value, order);
        if (old == value) spin_hint();
        return result_of_exchange(old, number);
    }
}

template <class Bits>
__forceinline__ bool atomic_compare_exchange(Bits& place, Bits& expected, Bits desired, MemoryOrder order,
                                             AtomicScope scope) {
    static_assert(sizeof(Bits) >= 2, "an atomic compare-and-exchange needs a type of 2, 4, 8 or 16 bytes");
    note(AtomicKind::ordered, &place);
    bool equal;
    if constexpr (sizeof(Bits) == 16) {
        Bits found;
        compare_and_swap_16_bytes(&place, &expected, &desired, &found);
        equal = __builtin_memcmp(&found, &expected, sizeof found) == 0;
        expected = found;
    } else {
        announce(scope);
        equal = AtomicWord<Bits>(place).compare_exchange_strong(expected, desired, order);
    }
    if (!equal) spin_hint();
    return equal;
}

// *address = change(*address) in one step; returns what was there before.
template <class T, class Change>
__forceinline__ T atomic_change(T* address, MemoryOrder order, AtomicScope scope, Change change) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "this atomic function needs a type of 4 or 8 bytes");
    note(AtomicKind::ordered, address);
    AtomicWord<T> target(*address);
    announce(scope);
    T old = target.load(MemoryOrder::relaxed);
    T now = change(old);
    while (!target.compare_exchange_weak(old, now, order))
        now = change(old);
    if (old == now) spin_hint();
    return old;
}

// Integers wrap around.
template <class T>
constexpr T sum(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
    else
        return a + b;
}
template <class T>
constexpr T difference(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<unsigned long long>(a) - static_cast<unsigned long long>(b));
    else
        return a - b;
}

}  // namespace cuda_on_cpu

// ---- Loads and stores: values of 1, 2, 4, 8 or 16 bytes ------------------------------------------------------------

template <class T>
__forceinline__ void __nv_atomic_load(T* address, std::remove_cv_t<T>* result,
                                      cuda_on_cpu::AtomicLoadOrder order,
                                      cuda_on_cpu::AtomicScope scope = {}) {
    const auto bits = cuda_on_cpu::atomic_load(cuda_on_cpu::bits_of(address), order.value, scope);
    __builtin_memcpy(result, &bits, sizeof bits);
}
template <class T>
__forceinline__ std::remove_cv_t<T> __nv_atomic_load_n(T* address, cuda_on_cpu::AtomicLoadOrder order,
                                                       cuda_on_cpu::AtomicScope scope = {}) {
    static_assert(std::is_integral_v<T>, "__nv_atomic_load_n needs an integer; expected __nv_atomic_load");
    return static_cast<std::remove_cv_t<T>>(
        cuda_on_cpu::atomic_load(cuda_on_cpu::bits_of(address), order.value, scope));
}

template <class T>
__forceinline__ void __nv_atomic_store(T* address, std::type_identity_t<T>* value,
                                       cuda_on_cpu::AtomicStoreOrder order,
                                       cuda_on_cpu::AtomicScope scope = {}) {
    cuda_on_cpu::atomic_store(cuda_on_cpu::bits_of(address), cuda_on_cpu::bits_of(value), order.value, scope);
}
template <class T>
__forceinline__ void __nv_atomic_store_n(T* address, std::type_identity_t<T> value,
                                         cuda_on_cpu::AtomicStoreOrder order,
                                         cuda_on_cpu::AtomicScope scope = {}) {
    static_assert(std::is_integral_v<T>, "__nv_atomic_store_n needs an integer; expected __nv_atomic_store");
    cuda_on_cpu::atomic_store(cuda_on_cpu::bits_of(address), cuda_on_cpu::bits_of(&value), order.value,
                              scope);
}

// ---- Exchange ------------------------------------------------------------------------------------------------------

template <class T>
__forceinline__ void __nv_atomic_exchange(T* address, std::type_identity_t<T>* value,
                                          std::type_identity_t<T>* result, cuda_on_cpu::AtomicOrder order,
                                          cuda_on_cpu::AtomicScope scope = {}) {
    const auto old = cuda_on_cpu::atomic_exchange(cuda_on_cpu::bits_of(address), cuda_on_cpu::bits_of(value),
                                                  order.value, scope);
    __builtin_memcpy(result, &old, sizeof old);
}
template <class T>
__forceinline__ T __nv_atomic_exchange_n(T* address, std::type_identity_t<T> value,
                                         cuda_on_cpu::AtomicOrder order,
                                         cuda_on_cpu::AtomicScope scope = {}) {
    static_assert(std::is_integral_v<T>,
                  "__nv_atomic_exchange_n needs an integer; expected __nv_atomic_exchange");
    return static_cast<T>(cuda_on_cpu::atomic_exchange(cuda_on_cpu::bits_of(address),
                                                       cuda_on_cpu::bits_of(&value), order.value, scope));
}

// Returns whether *address was equal to *expected; if not, *expected becomes the value of *address.
// `weak` has no effect.
template <class T>
__forceinline__ bool __nv_atomic_compare_exchange(T* address, std::type_identity_t<T>* expected,
                                                  std::type_identity_t<T>* desired, bool /*weak*/,
                                                  cuda_on_cpu::AtomicOrder success,
                                                  cuda_on_cpu::AtomicOrder failure,
                                                  cuda_on_cpu::AtomicScope scope = {}) {
    return cuda_on_cpu::atomic_compare_exchange(cuda_on_cpu::bits_of(address), cuda_on_cpu::bits_of(expected),
                                                cuda_on_cpu::bits_of(desired),
                                                cuda_on_cpu::stronger(success.value, failure.value), scope);
}
template <class T>
__forceinline__ bool __nv_atomic_compare_exchange_n(T* address, std::type_identity_t<T>* expected,
                                                    std::type_identity_t<T> desired, bool weak,
                                                    cuda_on_cpu::AtomicOrder success,
                                                    cuda_on_cpu::AtomicOrder failure,
                                                    cuda_on_cpu::AtomicScope scope = {}) {
    static_assert(std::is_integral_v<T>,
                  "__nv_atomic_compare_exchange_n needs an integer; expected __nv_atomic_compare_exchange");
    return __nv_atomic_compare_exchange(address, expected, &desired, weak, success, failure, scope);
}

// ---- Arithmetic and bits -------------------------------------------------------------------------------------------

#define CUDA_ON_CPU_ATOMIC(name, types, sentence, expression)                                     \
    template <class T>                                                                            \
    __forceinline__ T __nv_atomic_fetch_##name(T* address, std::type_identity_t<T> value,         \
                                               cuda_on_cpu::AtomicOrder order,                    \
                                               cuda_on_cpu::AtomicScope scope = {}) {             \
        static_assert(std::types<T>, "__nv_atomic_fetch_" #name " needs " sentence);              \
        return cuda_on_cpu::atomic_change(address, order.value, scope,                            \
                                          [value](T old) { return static_cast<T>(expression); }); \
    }                                                                                             \
    template <class T>                                                                            \
    __forceinline__ void __nv_atomic_##name(T* address, std::type_identity_t<T> value,            \
                                            cuda_on_cpu::AtomicOrder order,                       \
                                            cuda_on_cpu::AtomicScope scope = {}) {                \
        __nv_atomic_fetch_##name(address, value, order, scope);                                   \
    }

CUDA_ON_CPU_ATOMIC(add, is_arithmetic_v, "a number", cuda_on_cpu::sum(old, value))
CUDA_ON_CPU_ATOMIC(sub, is_arithmetic_v, "a number", cuda_on_cpu::difference(old, value))
CUDA_ON_CPU_ATOMIC(min, is_integral_v, "an integer", value < old ? value : old)
CUDA_ON_CPU_ATOMIC(max, is_integral_v, "an integer", old < value ? value : old)
CUDA_ON_CPU_ATOMIC(and, is_integral_v, "an integer", old& value)
CUDA_ON_CPU_ATOMIC(or, is_integral_v, "an integer", old | value)
CUDA_ON_CPU_ATOMIC(xor, is_integral_v, "an integer", old ^ value)
#undef CUDA_ON_CPU_ATOMIC

// ---- Fence ---------------------------------------------------------------------------------------------------------

__forceinline__ void __nv_atomic_thread_fence(cuda_on_cpu::AtomicOrder order,
                                              cuda_on_cpu::AtomicScope scope = {}) {
    if (order.value == cuda_on_cpu::MemoryOrder::relaxed) return;
    if (scope.value == __NV_THREAD_SCOPE_THREAD || scope.value == __NV_THREAD_SCOPE_BLOCK)
        __threadfence_block();
    else
        __threadfence();
}
