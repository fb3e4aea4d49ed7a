// Regions of a kernel, between its barriers. Where the translator can follow each word of a kernel,
// a region becomes a function of the thread's place,
//
//     __global__ void reverse(float* x) {
//         __shared__ float tile[64];
//         float own = x[threadIdx.x];
//         tile[threadIdx.x] = own;
//         __syncthreads();
//         x[threadIdx.x] = own - tile[63 - threadIdx.x];
//     }
//
//     ... prepare_regions("x", [=]<class Threads>(const Threads& threads) {
//             static thread_local float tile[64];
//             static thread_local RowOf<Threads, float> row;    OwnOf<Threads, float> own_;
//             threads.each([&](const ThreadPlace& place, unsigned thread) {
//                 float& own = Threads::kept(row, own_, thread);
//                 own = x[place.threadIdx.x];
//                 tile[place.threadIdx.x] = own;
//             });
//             if constexpr (Threads::kAlone) __syncthreads();
//             threads.each([&](const ThreadPlace& place, unsigned thread) { ... });
//         }, x);
//
// and a block runs as one loop over its threads after the other (WholeBlock), which the compiler
// can vectorise. The same function runs a single thread as the scheduler does (SingleThread).
// After: Karrenberg and Hack, "Improving performance of OpenCL on CPUs", CC 2012; Stratton and
// others, "MCUDA", LCPC 2008.
#pragma once

#include "cuda_on_cpu/rows.h"

namespace cuda_on_cpu {

inline constexpr unsigned kThreadsOfBlock = 1024;

// The running thread.
struct SingleThread : BlockPlace {
    static constexpr bool kAlone = true;
    template <class T>
    struct Row {};
    template <class T>
    struct Own {
        T value;
    };

    template <class Region>
    __forceinline__ void each(const Region& region) const {
        region(ThreadPlace{threadIdx, blockIdx, blockDim, gridDim}, 0U);
    }
    template <class T>
    __forceinline__ static T& kept(Row<T>&, Own<T>& own, unsigned) {
        return own.value;
    }
};

// All threads of a block. What a thread keeps from one region to the next is an element of a row.
struct WholeBlock : BlockPlace {
    static constexpr bool kAlone = false;
    template <class T>
    struct Row {
        T values[kThreadsOfBlock];
    };
    template <class T>
    struct Own {};

    template <class Region>
    __forceinline__ void each(const Region& region) const {
        // What a region has stored is not known in the next one: a mistaken index may have changed
        // it.
        asm volatile("" : : : "memory");
        const unsigned count = blockDim.x & 2047U;
        const BlockPlace place = *this;
        unsigned first = 0;
        for (unsigned z = 0; z < place.blockDim.z; ++z) {
            for (unsigned y = 0; y < place.blockDim.y; ++y, first += count) {
                for (unsigned x = 0; x < count; ++x)
                    region(ThreadPlace{{x, y, z}, place.blockIdx, place.blockDim, place.gridDim}, first + x);
            }
        }
    }
    template <class T>
    __forceinline__ static T& kept(Row<T>& row, Own<T>&, unsigned thread) {
        return row.values[thread];
    }
};

template <class Threads, class T>
using RowOf = typename Threads::template Row<std::remove_const_t<T>>;
template <class Threads, class T>
using OwnOf = typename Threads::template Own<std::remove_const_t<T>>;

// A loop over threads is inside of a kernel's loops as often as around them, and pays when it is
// exchanged with them, which needs -O3. An index past the end of an array is a mistake of one
// thread, and tells nothing of how many threads there are.
#ifdef __clang__
#define CUDA_ON_CPU_REGIONS __attribute__((noinline))
#else
#define CUDA_ON_CPU_REGIONS \
    __attribute__((noinline, optimize("O3", "wrapv", "fp-contract=off", "no-aggressive-loop-optimizations")))
#endif

template <class Closure>
CUDA_ON_CPU_REGIONS void run_regions(const void* prepared, const BlockPlace& block) {
    const Closure own = *static_cast<const Closure*>(prepared);
    if (block.gridDim.x > kBlocksOfSmallGrid) {
        own(WholeBlock{block});
    } else {
        own(WholeBlock{with_small_numbers(block)});
    }
}

template <class Closure>
CUDA_ON_CPU_THREAD_OF_ROW void run_thread_of_regions(const void* prepared) {
    const Closure own = *static_cast<const Closure*>(prepared);
    own(SingleThread{{blockIdx, blockDim, gridDim}});
}

}  // namespace cuda_on_cpu
