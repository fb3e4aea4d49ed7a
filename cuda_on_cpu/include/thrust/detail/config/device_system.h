// Thrust of the distribution, and what is different over the stand-in: its device system is that of
// the host, memory comes from cudaMalloc, and an algorithm waits for its stream before it begins.
#pragma once
#pragma GCC system_header  // #include_next

#if !defined(THRUST_DEVICE_SYSTEM) || THRUST_DEVICE_SYSTEM == 1
#undef THRUST_DEVICE_SYSTEM
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif

#include_next <thrust/detail/config/device_system.h>
