// The keywords that CUDA adds to C++. On the CPU most of them expand to nothing, because every
// function can run on "the device". `__global__`, `__shared__`, `__launch_bounds__` and
// `__noinline__` stay in the text of a .cu file, where the translator rewrites them.
#pragma once

#if !defined(__clang__) && __cplusplus >= 202002L
#include <source_location>
#endif

// Constant memory is recognised by its section. (The translator gives const variables a section of
// their own, because a section is either writable or not.)
#define CUDA_ON_CPU_CONSTANT __attribute__((section("cuda_on_cpu_constant")))

#ifndef __CUDA__   // an editor's clang, which knows CUDA itself: cuda_on_cpu/editor.h has defined them
#ifdef __CUDACC__  // these stay in the text, for the translator
#define __device__ __device__
#define __host__ __host__
#define __constant__ __constant__ CUDA_ON_CPU_CONSTANT
#define __managed__ __managed__
#define __grid_constant__ __grid_constant__
#else
#define __device__
#define __host__
#define __constant__ CUDA_ON_CPU_CONSTANT
#define __managed__
#define __global__  // a .cpp file may include a header that declares kernels
#define __shared__
#define __launch_bounds__(...)
#define __grid_constant__
#endif
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#endif

namespace cuda_on_cpu {

// A place in the learner's source. Functions that wait or fail take one as their last, defaulted
// parameter, so that every report can name the place:
//     void __syncwarp(unsigned mask, Site site = Site::here());
struct Site {
    const char* file;
    // A union, so that compilers copy and compare line and column in one step.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnested-anon-types"
#endif
    union {
        __extension__ struct {
            int line;
            unsigned column;  // in the translated text: two barriers on one line are two places
        };
        unsigned long long line_and_column;
    };
#ifdef __clang__
#pragma clang diagnostic pop
#endif

    constexpr Site(const char* in_file, int at_line, unsigned at_column = 0)
        : file(in_file), line(at_line), column(at_column) {}

#ifdef __clang__
    static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                               unsigned column = __builtin_COLUMN()) {
        return {file, line, column};
    }
#elif __cplusplus < 202002L
    static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
        return {file, line};
    }
#else
    static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                               unsigned column = std::source_location::current().column()) {
        return {file, line, column};
    }
#endif
};

}  // namespace cuda_on_cpu
