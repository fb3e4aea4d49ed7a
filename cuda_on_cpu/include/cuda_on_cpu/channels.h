// The channels of an element: float has one, uchar4 four.
#pragma once

#include <type_traits>

#include "driver_types.h"

namespace cuda_on_cpu {

template <class T>
struct Channels {
    using Type = std::remove_cvref_t<decltype(T::x)>;
    static constexpr int kCount = sizeof(T) / sizeof(Type);
};
template <class T>
requires std::is_arithmetic_v<T>
struct Channels<T> {
    using Type = T;
    static constexpr int kCount = 1;
};

template <class Channel>
inline constexpr cudaChannelFormatKind kChannelKind =
    std::is_floating_point_v<Channel> ? cudaChannelFormatKindFloat
    : std::is_signed_v<Channel>       ? cudaChannelFormatKindSigned
                                      : cudaChannelFormatKindUnsigned;

}  // namespace cuda_on_cpu
