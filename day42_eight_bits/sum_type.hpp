// The type of the sums, which the lesson and the host API share.
#pragma once

#include <cstdint>
#include <type_traits>

namespace day42 {

// Of T: std::int8_t, __nv_fp8_e4m3 or __nv_fp8_e5m2.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, std::int32_t, float>;

}  // namespace day42
