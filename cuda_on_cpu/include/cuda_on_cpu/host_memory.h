// Memory of the host that the stand-in's own headers use in a kernel. Kernels may not: an
// inspection reports their accesses.
#pragma once

#include <type_traits>

#include "cuda_on_cpu/atomic_word.h"

namespace cuda_on_cpu {

extern constinit thread_local int uses_host_memory;

// While one exists, the thread works for the stand-in.
class UsesHostMemory {
  public:
    UsesHostMemory() { ++uses_host_memory; }
    ~UsesHostMemory() { --uses_host_memory; }
    UsesHostMemory(const UsesHostMemory&) = delete;
    UsesHostMemory& operator=(const UsesHostMemory&) = delete;
};

// Calls a thread's own copy of `original`: it may write to its parameters. Constructors and
// destructors of their classes are the host's code, because a GPU's threads get the bytes.
template <class Closure, class... Place>
__attribute__((always_inline)) inline void run_copy(const Closure& original, const Place&... place) {
    if constexpr (std::is_trivially_copyable_v<Closure>) {
        Closure own = original;
        own(place...);
    } else {
        union Own {
            explicit Own(const Closure& from) : closure(from) {}
            ~Own() {}
            Closure closure;
        };
        ++uses_host_memory;
        Own own(original);
        --uses_host_memory;
        own.closure(place...);
        const UsesHostMemory for_destructors;
        own.closure.~Closure();
    }
}

// True once a kernel has allocated from the host's heap what the heap of the device does not count,
// until cudaDeviceReset().
extern constinit Atomic<bool> kernels_share_heap;

}  // namespace cuda_on_cpu
