// Memory of the host that the stand-in's own headers use in a kernel. Kernels may not: an
// inspection reports their accesses.
#pragma once

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

// True once a kernel has allocated from the host's heap what the heap of the device does not count,
// until cudaDeviceReset().
extern constinit Atomic<bool> kernels_share_heap;

}  // namespace cuda_on_cpu
