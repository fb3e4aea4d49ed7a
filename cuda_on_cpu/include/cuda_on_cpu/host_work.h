// Work that the host does in the place of kernels: algorithms of Thrust and CUB.
#pragma once

#include <cstddef>
#include <functional>

#include "driver_types.h"

namespace cuda_on_cpu {

// `work` runs when the stream comes to it. It may write any device memory.
cudaError_t submit_host_work(cudaStream_t stream, const char* function, std::function<void()> work);

// In such work: could a kernel access these bytes? If not, a sentence says so on stderr, and the
// context is lost, as after a kernel.
bool check_device_memory(const char* function, const char* argument, const void* pointer, std::size_t bytes);

// Before work that runs at once: waits for the stream. An error is that of an earlier kernel.
// Nothing in a kernel.
cudaError_t begin_host_work(cudaStream_t stream);

}  // namespace cuda_on_cpu
