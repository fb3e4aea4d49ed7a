// The operations of streams and of graph nodes.
#pragma once

#include <optional>

#include "cuda_on_cpu/launch.h"
#include "driver_types.h"
#include "work_queue.hpp"

namespace cuda_on_cpu {

struct StreamOperation {
    Work work;
    cudaGraphNodeType type = cudaGraphNodeTypeMemcpy;
    bool may_wait = false;                      // for the host or for another stream
    bool host_waits = false;                    // the call returns when the work is done
    std::optional<LaunchConfiguration> launch;  // of a kernel
};

}  // namespace cuda_on_cpu
