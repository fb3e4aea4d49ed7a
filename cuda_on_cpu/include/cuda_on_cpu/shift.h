// Shifts as on a GPU: an amount equal to the width or larger shifts all bits out. (A CPU takes the
// amount modulo the width, and in C++ the result is undefined.) The translator marks the amounts of
// shifts in device code: `v << n` becomes `v << ::cuda_on_cpu::shift_amount(n)`.
#pragma once

#include <type_traits>

namespace cuda_on_cpu {

template <class T>
struct ShiftAmount {
    T value;

    constexpr operator T() const { return value; }  // the left operand may not be an integer
};

template <class T>
__attribute__((always_inline)) constexpr auto shift_amount(const T& amount) {
    if constexpr (std::is_integral_v<T>) {
        return ShiftAmount<T>{amount};
    } else {
        return amount;
    }
}

template <class T>
concept Shiftable = requires(T x) {
    requires std::is_integral_v<decltype(+x)>;
};

template <Shiftable T, class N>
__attribute__((always_inline)) constexpr auto operator<<(T x, ShiftAmount<N> amount) {
    using Promoted = decltype(+x);
    constexpr unsigned long long kWidth = 8 * sizeof(Promoted);
    return static_cast<unsigned long long>(amount.value) < kWidth ? static_cast<Promoted>(+x << amount.value)
                                                                  : Promoted{0};
}

template <Shiftable T, class N>
__attribute__((always_inline)) constexpr auto operator>>(T x, ShiftAmount<N> amount) {
    using Promoted = decltype(+x);
    constexpr unsigned long long kWidth = 8 * sizeof(Promoted);
    const Promoted promoted = x;
    if (static_cast<unsigned long long>(amount.value) < kWidth)
        return static_cast<Promoted>(promoted >> amount.value);
    return static_cast<Promoted>(promoted >> (kWidth - 1) >> (std::is_unsigned_v<Promoted> ? 1 : 0));
}

template <Shiftable T, class N>
__attribute__((always_inline)) constexpr T& operator<<=(T& x, ShiftAmount<N> amount) {
    return x = static_cast<T>(x << amount);
}

template <Shiftable T, class N>
__attribute__((always_inline)) constexpr T& operator>>=(T& x, ShiftAmount<N> amount) {
    return x = static_cast<T>(x >> amount);
}

}  // namespace cuda_on_cpu
