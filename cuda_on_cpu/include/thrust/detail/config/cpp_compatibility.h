// Constants of Thrust are the same in host and device code.
#pragma once
#pragma GCC system_header  // #include_next

#include_next <thrust/detail/config/cpp_compatibility.h>
#undef THRUST_INLINE_CONSTANT
#define THRUST_INLINE_CONSTANT static constexpr
