// Work that the host does in place of kernels: the algorithms of Thrust and CUB.
#pragma once

#include <cstddef>
#include <functional>

#include "driver_types.h"

namespace cuda_on_cpu {

// `work` runs when the stream reaches it. It may write any device memory.
cudaError_t submit_host_work(cudaStream_t stream, const char* function, std::function<void()> work);

// To be called in such work: could a kernel access these bytes? If not, it prints a message on
// stderr and the context is lost, as after a failed kernel.
bool check_device_memory(const char* function, const char* argument, const void* pointer, std::size_t bytes);

// To be called before work that runs at once: waits for the stream. An error is that of an earlier
// kernel. Does nothing in a kernel.
cudaError_t begin_host_work(cudaStream_t stream);

}  // namespace cuda_on_cpu
