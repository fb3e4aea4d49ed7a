// Kernels with many and with few registers, with large and small shared arrays, for the tests of
// occupancy.
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
    // Runs one block, because the CPU stand-in knows the shared memory of a kernel only after a
    // run.
    std::function<void()> run;
    // resources_of() the kernel.
    std::function<KernelResources(int threads, std::size_t dynamic_shared)> resources;
    // CUDA's own result for the number of its blocks on a multiprocessor.
    std::function<int(int threads, std::size_t dynamic_shared)> blocks;
};

std::span<const OccupancyKernel> occupancy_kernels();

}  // namespace course::testing
