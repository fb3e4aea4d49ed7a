// Which words of a structure are pointers, for structures of plain numbers and pointers: other
// words may hold what the host's stack held before, host pointers among it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace cuda_on_cpu {

// Becomes any number or pointer, but no class: members of nested structures and elements of arrays
// are initialised one by one.
struct AnyScalar {
    static constexpr std::uintptr_t kPointer = 0x5EED'5EED'5EED'5EED;
    template <class T>
    requires std::is_scalar_v<T>
    operator T() const {
        if constexpr (std::is_pointer_v<T>) {
            return reinterpret_cast<T>(kPointer);
        } else {
            return T{};
        }
    }
};

struct AnyClass {
    template <class T>
    requires std::is_class_v<T>
    operator T() const;
};

template <class T, std::size_t... I>
constexpr bool takes_scalars(std::index_sequence<I...>) {
    return requires {
        T{(static_cast<void>(I), AnyScalar())...};
    };
}
template <class T, std::size_t... I>
constexpr bool goes_on_with_class(std::index_sequence<I...>) {
    return requires {
        T{(static_cast<void>(I), AnyScalar())..., AnyClass()};
    };
}

// How many scalars initialise a T, at least kLow and at most kHigh.
template <class T, std::size_t kLow, std::size_t kHigh>
constexpr std::size_t count_scalars() {
    if constexpr (kLow == kHigh) {
        return kLow;
    } else {
        constexpr std::size_t kMiddle = (kLow + kHigh + 1) / 2;
        if constexpr (takes_scalars<T>(std::make_index_sequence<kMiddle>()))
            return count_scalars<T, kMiddle, kHigh>();
        else
            return count_scalars<T, kLow, kMiddle - 1>();
    }
}

template <std::size_t kWords>
struct PointerWords {
    bool is_pointer[kWords + 1];
};

template <class T, std::size_t... I>
PointerWords<sizeof(T) / sizeof(std::uintptr_t)> pointer_words(std::index_sequence<I...>) {
    PointerWords<sizeof(T) / sizeof(std::uintptr_t)> words{};
    const T object{(static_cast<void>(I), AnyScalar())...};
    for (std::size_t i = 0; i < sizeof(T) / sizeof(std::uintptr_t); ++i) {
        std::uintptr_t word;
        std::memcpy(&word, reinterpret_cast<const char*>(&object) + i * sizeof word, sizeof word);
        words.is_pointer[i] = word == AnyScalar::kPointer;
    }
    return words;
}

// Not static in the function: a kernel that launches a kernel would ask whether it is initialised.
template <class T, std::size_t kCount>
inline const auto kPointerWords = pointer_words<T>(std::make_index_sequence<kCount>());

// For each word of a T, whether it is a pointer; null: that is not known.
template <class T>
const bool* pointers_in() {
    constexpr std::size_t kMost = 64;
    if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
        constexpr std::size_t kCount = count_scalars<T, 0, kMost + 1>();
        if constexpr (kCount > 0 && kCount <= kMost &&
                      !goes_on_with_class<T>(std::make_index_sequence<kCount>()))
            return kPointerWords<T, kCount>.is_pointer;
    }
    return nullptr;
}

}  // namespace cuda_on_cpu
