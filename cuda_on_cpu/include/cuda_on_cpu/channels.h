// The channels of an element: float has one, uchar4 four.
#pragma once

#include <type_traits>

#include "driver_types.h"

namespace cuda_on_cpu {

template <class T, bool kIsNumber = std::is_arithmetic<T>::value>
struct Channels {
    using Type = std::remove_cv_t<decltype(T::x)>;
    static constexpr int kCount = sizeof(T) / sizeof(Type);
};
template <class T>
struct Channels<T, true> {
    using Type = T;
    static constexpr int kCount = 1;
};

template <class Channel>
constexpr cudaChannelFormatKind kChannelKind =
    std::is_floating_point<Channel>::value ? cudaChannelFormatKindFloat
    : std::is_signed<Channel>::value       ? cudaChannelFormatKindSigned
                                           : cudaChannelFormatKindUnsigned;

}  // namespace cuda_on_cpu
