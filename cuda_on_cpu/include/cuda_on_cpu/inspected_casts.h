// Casts to pointers in inspected code. The translator writes `(T*)p` as `cast_to((T*)p)`.
//
// Where the compiler knows that an address is misaligned, as in `*(int*)(tile + 1)`, it announces
// an access of bytes, as to a packed structure. So such an address is hidden from it. An access of
// a structure is always one of bytes, and what it needs is known here alone.
#pragma once

#ifdef __SANITIZE_THREAD__

#include <cstddef>
#include <cstdint>
#include <type_traits>

extern "C" void cuda_on_cpu_misaligned_cast(const volatile void* pointer, std::size_t bytes,
                                            std::size_t alignment) noexcept;

namespace cuda_on_cpu {

template <class T>
__attribute__((always_inline)) constexpr void note_cast(T*& pointer) {
    if constexpr (std::is_object_v<T>) {
        if constexpr (requires { sizeof(T); }) {
            if (std::is_constant_evaluated()) return;
            const auto beside = reinterpret_cast<std::uintptr_t>(pointer) & (alignof(T) - 1);
            if (__builtin_constant_p(beside) && beside != 0) asm("" : "+r"(pointer));
#ifdef CUDA_ON_CPU_INSPECT
            if constexpr (sizeof(T) != alignof(T) && alignof(T) > 1)
                if (beside != 0) cuda_on_cpu_misaligned_cast(pointer, sizeof(T), alignof(T));
#endif
        }
    }
}

template <class T>
requires(!std::is_lvalue_reference_v<T>) __attribute__((always_inline)) constexpr T cast_to(T&& value) {
    if constexpr (std::is_pointer_v<T>) note_cast(value);
    return value;
}
template <class T>
__attribute__((always_inline)) constexpr T& cast_to(T& object) {
    T* pointer = __builtin_addressof(object);
    note_cast(pointer);
    return *pointer;
}

}  // namespace cuda_on_cpu

#endif
