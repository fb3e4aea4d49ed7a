// What the user can set in the environment.
#pragma once

#include <chrono>

namespace cuda_on_cpu {

struct Environment {
    unsigned threads;  // CUDA_ON_CPU_THREADS: OS threads that run blocks (default: one per core)
    bool descending;   // CUDA_ON_CPU_ORDER=descending: lanes and warps run last to first
    std::chrono::seconds
        timeout;        // CUDA_ON_CPU_TIMEOUT: how long a block may poll memory in vain (default 30)
    unsigned notice;    // CUDA_ON_CPU_NOTICE: see slow_launch.hpp; 0: never
    bool named_lines;   // CUDA_ON_CPU_PRINTF=threads: each line that a kernel prints names its thread
    bool late_stores;   // CUDA_ON_CPU_STORES=late: see late_stores.cpp
    bool findings;      // CUDA_ON_CPU_FINDINGS=off: an inspection counts accesses and looks for no mistakes
    bool leaks;         // CUDA_ON_CPU_LEAKS=on: what was never freed is told at the end
    unsigned blocks;    // CUDA_ON_CPU_BLOCKS: of each grid only the first so many run; 0: all
    bool kernel_lines;  // CUDA_ON_CPU_LINES=kernel: what was inlined from a header is a line of the .cu file
};

// Read once. A value that makes no sense ends the program with a message.
const Environment& environment();

}  // namespace cuda_on_cpu
