// Error state of the runtime: the last error of each host thread, and the one that ends everything.
#pragma once

#include "driver_types.h"

namespace cuda_on_cpu {

// Notes `error` as this host thread's last one and returns it. Every API function ends in this or
// in cudaSuccess.
cudaError_t set_last_error(cudaError_t error);

// Prints `function: message` on stderr, then notes the error.
[[gnu::format(printf, 3, 4)]] cudaError_t refuse(cudaError_t error, const char* function, const char* format,
                                                 ...);

// After a kernel has failed nothing works until cudaDeviceReset(): as on a GPU, whose
// context is lost. Each device has its own; these are of the current one.
cudaError_t lost_context();
void lose_context(cudaError_t error);
void restore_context();

}  // namespace cuda_on_cpu
