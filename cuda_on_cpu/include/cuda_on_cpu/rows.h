// Rows of threads. Where the translator sees that the threads of a kernel only compute, without a
// word to each other or to the runtime, it makes the kernel's body a function of the thread's
// place,
//
//     __global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }
//     ... prepare_rows("x, a", [=](const ThreadPlace& place) mutable { x[place.threadIdx.x] *= a; }, x, a); ...
//
// and a block runs as loops over its threads (run_in_rows), which the compiler can vectorise.
#pragma once

#include <concepts>
#include <type_traits>

#include "cuda_on_cpu/thread.h"
#include "vector_types.h"

// A debugger shows each thread, and a sanitizer its accesses, as the scheduler runs them.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_CPU_ROWS 1
#else
#define CUDA_ON_CPU_ROWS 0
#endif

namespace cuda_on_cpu {

// What a kernel reads in place of the variables with these names.
struct ThreadPlace {
    uint3 threadIdx;
    uint3 blockIdx;
    dim3 blockDim;
    dim3 gridDim;
};

struct BlockPlace {
    uint3 blockIdx;
    dim3 blockDim;
    dim3 gridDim;
};
// Runs all threads of a block.
using RunBlock = void (*)(const void* closure, const BlockPlace& block);

// Types whose operators are those of the language, so that no function hides behind them.
template <class T>
struct IsPlain : std::bool_constant<std::is_arithmetic_v<T> && !std::is_volatile_v<T>> {};
template <class T>
struct IsPlain<const T> : IsPlain<T> {};
template <>
struct IsPlain<void> : std::true_type {};
template <class T>
struct IsPlain<T*> : IsPlain<T> {};
template <class T>
struct IsPlain<T* const> : IsPlain<T> {};
template <class T>
struct IsPlain<T* __restrict__> : IsPlain<T> {};
template <class T>
struct IsPlain<T* const __restrict__> : IsPlain<T> {};
template <class... T>
inline constexpr bool all_plain = (true && ... && IsPlain<T>::value);

// Is this the only function that its name stands for?
template <class Function, class Found>
constexpr bool is_only(Found*, int) {
    return true;
}
template <class Function>
constexpr bool is_only(std::type_identity_t<Function>*, long) {
    return false;
}

// g++ contracts products and sums to fused operations where it finds them side by side. That would
// depend on what it has made of a loop, so here it leaves them apart: every way of running a thread
// gives the same bits. clang++ contracts what is one expression in the source.
#ifdef __clang__
#define CUDA_ON_CPU_ROW __attribute__((noinline))
#define CUDA_ON_CPU_THREAD_OF_ROW __attribute__((noinline))
#else
#define CUDA_ON_CPU_ROW                                                                              \
    __attribute__((noinline, optimize("tree-loop-vectorize", "tree-vrp", "wrapv", "fp-contract=off", \
                                      "no-aggressive-loop-optimizations")))
#define CUDA_ON_CPU_THREAD_OF_ROW __attribute__((noinline, optimize("wrapv", "fp-contract=off")))
#endif

// In a grid that is not huge, the compiler sees that blockIdx.x * blockDim.x + threadIdx.x fits an
// int, without which `int i = ...` could wrap, and adjacent threads would not take adjacent
// elements.
inline constexpr unsigned kBlocksOfSmallGrid = 1U << 19;

// Threads of a block that differ in x alone; all of them.
template <class Closure>
__forceinline__ void run_row_of(const Closure& original, unsigned y, unsigned z, const BlockPlace& block) {
    const unsigned count = block.blockDim.x & 2047U;
    const BlockPlace place = block;
    for (unsigned x = 0; x < count; ++x) {
        Closure own = original;  // a thread may write to its parameters
        own(ThreadPlace{{x, y, z}, place.blockIdx, place.blockDim, place.gridDim});
    }
}

// In a small grid.
constexpr BlockPlace with_small_numbers(BlockPlace block) {
    block.blockIdx.x &= kBlocksOfSmallGrid - 1;
    block.blockDim.x &= 2047U;
    return block;
}

template <class Closure>
CUDA_ON_CPU_ROW void run_row(const void* prepared, unsigned y, unsigned z, const BlockPlace& block) {
    const Closure original = *static_cast<const Closure*>(prepared);
    if (block.gridDim.x > kBlocksOfSmallGrid) {
        run_row_of(original, y, z, block);
    } else {
        run_row_of(original, y, z, with_small_numbers(block));
    }
}

template <class Closure>
void run_in_rows(const void* prepared, const BlockPlace& block) {
    for (unsigned z = 0; z < block.blockDim.z; ++z) {
        for (unsigned y = 0; y < block.blockDim.y; ++y)
            run_row<Closure>(prepared, y, z, block);
    }
}

// The running thread alone.
template <class Closure>
CUDA_ON_CPU_THREAD_OF_ROW void run_thread_of_row(const void* prepared) {
    Closure own = *static_cast<const Closure*>(prepared);
    own(ThreadPlace{threadIdx, blockIdx, blockDim, gridDim});
}

}  // namespace cuda_on_cpu
