// Lets the host get ahead of the GPU, so that the rate at which the host queues work does not
// limit the times that are measured next.
#pragma once

#include <cuda_runtime.h>

namespace course {

// Queues work that keeps the GPU busy for about `microseconds`. Does nothing on the CPU stand-in,
// where host and device do not overlap.
void give_head_start(int microseconds, cudaStream_t stream);

}  // namespace course
