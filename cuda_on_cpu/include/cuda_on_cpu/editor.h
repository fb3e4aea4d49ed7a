// For editors only: clangd reads this before every .cu and .cuh file (`.clangd` in the root of the
// course). No build includes it.
//
// Clang parses CUDA itself: `__global__`, `kernel<<<grid, block>>>(...)`, and the rule that a
// kernel may call only device functions. It needs the keywords as attributes, a function that takes
// the configuration of a launch, and to know which functions run on both sides. In the stand-in's
// headers every function does, so two pragmas around them declare that. The standard headers that
// they need are included first, because with nvcc, too, the library's functions run on the host,
// except those that are constexpr and those on floating-point numbers.
#pragma once

#ifndef __CUDA__
#error \
    "cuda_on_cpu/editor.h is for clang's own CUDA (-x cuda): an editor. The build translates .cu files instead"
#endif

#include <stdlib.h>

// Clang's own <new> adds operators for device code as soon as `__device__` is defined; clangd 14
// would confuse them with the host's.
#include <new>
#define __CLANG_CUDA_WRAPPERS_NEW

#define __CUDACC__
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))

// Uses __noinline__ as an attribute of the compiler.
#include <memory>
#define __noinline__ __attribute__((noinline))

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cfenv>
#include <cfloat>
#include <concepts>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <numbers>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma clang force_cuda_host_device begin
#include <cmath>
#include <cstring>

#include "cooperative_groups.h"
#include "cooperative_groups/reduce.h"
#include "cooperative_groups/scan.h"
#include "cuda.h"
#include "cuda/atomic"
#include "cuda/barrier"
#include "cuda/pipeline"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_fp4.h"
#include "cuda_fp6.h"
#include "cuda_fp8.h"
#include "cuda_runtime.h"
#include "math_constants.h"
#include "mma.h"
#pragma clang force_cuda_host_device end

// In a kernel. They are templates because clangd 14 would confuse another extern "C" function with
// the host's.
template <class... Arguments>
__device__ int printf(const char* format, Arguments... arguments);
template <class Line>
[[noreturn]] __device__ void __assert_fail(const char* assertion, const char* file, Line line,
                                           const char* function) noexcept;

// The functions that `<<<...>>>` calls; which of the two depends on the toolkit that clang finds.
int cudaConfigureCall(dim3 grid, dim3 block, std::size_t dynamic_shared = 0, cudaStream_t stream = nullptr);
extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t dynamic_shared = 0,
                                                cudaStream_t stream = nullptr);
