// What is issued to a stream, or is a node of a graph.
#pragma once

#include <optional>

#include "cuda_on_cpu/launch.h"
#include "driver_types.h"
#include "work_queue.hpp"

namespace cuda_on_cpu {

// Something to do in a stream, or in a node of a graph.
struct StreamOperation {
    Work work;
    cudaGraphNodeType type = cudaGraphNodeTypeMemcpy;
    bool may_wait = false;                      // for the host or for another stream
    bool host_waits = false;                    // the call returns when the work is done
    std::optional<LaunchConfiguration> launch;  // of a kernel
};

}  // namespace cuda_on_cpu
