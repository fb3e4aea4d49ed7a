// CUDA C++ on the CPU: the <cuda_runtime.h> of a machine without a GPU. In C it is the runtime API.
#pragma once

#define __CUDA_RUNTIME_H__

#ifndef __cplusplus
#include "cuda_runtime_api.h"
#else

#if __cplusplus < 202002L && !defined(__CUDACC__)  // host code that calls the runtime API

#if __cplusplus < 201402L
#error "CUDA on the CPU: cuda_runtime.h needs -std=c++14 or later; with CMake -DCMAKE_CXX_STANDARD=14"
#include "-std=c++14"  // ends the compilation, as in needs_cpp20.h
#endif
#include "channel_descriptor.h"
#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/removed_names.h"
#include "cuda_on_cpu/typed_api.h"
#include "cuda_runtime_api.h"
#include "driver_functions.h"

#else

#include "cuda_on_cpu/needs_cpp20.h"

// clang-format off
#include "cuda_on_cpu/macros_off.h"
#include "cuda_on_cpu/standard_math.h"  // before <cmath>
// clang-format on

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>  // clock(), which kernels call

#include "channel_descriptor.h"
#include "cuda_on_cpu/async_copy.h"
#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/barriers.h"
#include "cuda_on_cpu/cluster.h"
#include "cuda_on_cpu/device_heap.h"
#include "cuda_on_cpu/dpx.h"
#include "cuda_on_cpu/float_instructions.h"
#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/inspected_casts.h"
#include "cuda_on_cpu/inspected_memory.h"
#include "cuda_on_cpu/intrinsics.h"
#include "cuda_on_cpu/kernel_api.h"
#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/launch.h"
#include "cuda_on_cpu/math.h"
#include "cuda_on_cpu/occupancy.h"
#include "cuda_on_cpu/ordered_atomics.h"
#include "cuda_on_cpu/programmatic_launch.h"
#include "cuda_on_cpu/ptx.h"
#include "cuda_on_cpu/removed_names.h"
#include "cuda_on_cpu/shift.h"
#include "cuda_on_cpu/tensor_core.h"
#include "cuda_on_cpu/texture_fetch.h"
#include "cuda_on_cpu/texture_references.h"
#include "cuda_on_cpu/thread.h"
#include "cuda_on_cpu/variable_gaps.h"
#include "cuda_on_cpu/warp.h"
#include "cuda_runtime_api.h"
#include "driver_functions.h"

#include "cuda_on_cpu/macros_back.h"

#endif
#endif
