// What a kernel takes of a multiprocessor, as the compiler built it: what its occupancy follows
// from.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "common/bench/occupancy.hpp"
#include "common/check/check.hpp"

namespace course {

struct KernelResources {
    int threads = 0;               // of a block
    int registers = 0;             // of a thread; 0 on the CPU stand-in, which has none
    std::size_t local_bytes = 0;   // of a thread, in device memory: spilled registers, indexed arrays
    std::size_t shared_bytes = 0;  // of a block, static and dynamic
    int blocks = 0;                // that a multiprocessor of the current device runs at the same time
    double occupancy = 0;          // of the warps that it could run, how many these blocks have
    std::string limit{};           // what stops one more block (occupancy.hpp)
};

// Of `kernel`, launched with blocks of `threads` threads and `dynamic_shared` bytes, on the current
// device.
template <class Function>
KernelResources resources_of(Function* kernel, int threads, std::size_t dynamic_shared = 0) {
    cudaFuncAttributes attributes{};
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    const std::size_t shared = attributes.sharedSizeBytes + dynamic_shared;
    const Occupancy occupied =
        occupancy({.threads = threads, .registers = attributes.numRegs, .shared_bytes = shared},
                  multiprocessor_limits());
    return {.threads = threads,
            .registers = attributes.numRegs,
            .local_bytes = attributes.localSizeBytes,
            .shared_bytes = shared,
            .blocks = occupied.blocks,
            .occupancy = occupied.share,
            .limit = occupied.limit};
}

}  // namespace course
