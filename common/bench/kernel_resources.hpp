// The resources that a compiled kernel takes of a multiprocessor. They determine its occupancy.
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
    int blocks = 0;                // resident on a multiprocessor of the current device at the same time
    double occupancy = 0;          // share of the multiprocessor's warp slots that these blocks fill
    std::string limit{};           // what stops one more block (occupancy.hpp)
};

// The resources of `kernel` on the current device, launched with blocks of `threads` threads and
// `dynamic_shared` bytes.
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
