// <cmath> without a std::lerp that conflicts with a program's own: C++20 has overloads for float
// and double, which <math.h> brings into the global namespace. Programs of an older standard,
// nvcc's default, may define their own. Here std::lerp is a template, so that overload resolution
// prefers a program's function with the same parameters.
#pragma once

#include <type_traits>

#if defined(__GLIBCXX__) && !defined(_GLIBCXX_CMATH)
#define lerp cuda_on_cpu_lerp
#include <math.h>

#include <cmath>
#undef lerp

namespace std {

template <class A, class B, class T>
requires(is_arithmetic_v<A>&& is_arithmetic_v<B>&& is_arithmetic_v<T>) constexpr auto lerp(A a, B b,
                                                                                           T t) noexcept {
    return cuda_on_cpu_lerp(a, b, t);
}

}  // namespace std
#else
#include <math.h>

#include <cmath>
#endif
