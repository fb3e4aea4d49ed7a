#pragma once
#pragma GCC system_header  // #include_next

#if !__has_include_next(<thrust/device_vector.h>)
#error "Thrust is not installed; install it (Debian: libthrust-dev, libcub-dev)"
#endif
#include_next <thrust/device_vector.h>
#include <thrust/system/cuda/error.h>

// NVIDIA's Thrust is made of CUB, and programs that include Thrust alone use cub::BlockReduce.
#include <cub/cub.cuh>
