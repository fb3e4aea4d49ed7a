// Kernels with many and with few registers, large and small shared arrays: what occupancy is
// computed for.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "common/bench/kernel_resources.hpp"

namespace course::testing {

struct OccupancyKernel {
    std::string name;
    int most_threads = 0;    // of a block
    std::size_t shared = 0;  // static
    int live_values = 0;     // floats that each thread holds at the same time
    // Runs one block. The CPU stand-in learns so how much shared memory the kernel has.
    std::function<void()> run;
    // resources_of() the kernel.
    std::function<KernelResources(int threads, std::size_t dynamic_shared)> resources;
    // What CUDA says about how many of its blocks a multiprocessor runs.
    std::function<int(int threads, std::size_t dynamic_shared)> blocks;
};

std::span<const OccupancyKernel> occupancy_kernels();

}  // namespace course::testing
