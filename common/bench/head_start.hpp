// Lets the host get ahead of the GPU, so that what is timed next is not timed at the rate at which
// it is queued.
#pragma once

#include <cuda_runtime.h>

namespace course {

// Queues work that keeps the GPU busy for about `microseconds`. On the CPU stand-in, where nothing
// overlaps: nothing.
void give_head_start(int microseconds, cudaStream_t stream);

}  // namespace course
