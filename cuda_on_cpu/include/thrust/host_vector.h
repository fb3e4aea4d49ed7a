#pragma once
#pragma GCC system_header  // #include_next

#if !__has_include_next(<thrust/host_vector.h>)
#error "Thrust is not installed; install it (Debian: libthrust-dev, libcub-dev)"
#endif
#include_next <thrust/host_vector.h>
#include <thrust/system/cuda/error.h>
