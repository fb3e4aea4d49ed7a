// Error state of the runtime: the last error of each host thread, and the sticky error of each
// device.
#pragma once

#include "driver_types.h"
#include "environment.hpp"

namespace cuda_on_cpu {

// Stores `error` as this host thread's last error and returns it. Every API function returns
// through this function or returns cudaSuccess.
cudaError_t set_last_error(cudaError_t error);

// Prints `function: message` on stderr, then stores the error as above.
[[gnu::format(printf, 3, 4)]] cudaError_t refuse(cudaError_t error, const char* function, const char* format,
                                                 ...);

// CUDA_ON_CPU_REFUSE: must this call fail, for a test of what the program does then?
// Each call by the host asks once.
bool must_be_refused(RefusedCall call);
inline constexpr const char* kRefusedForATest = "refused, because CUDA_ON_CPU_REFUSE names this call";

// After a kernel has failed, all calls fail until cudaDeviceReset(), as on a GPU, where the context
// is lost. Each device has its own context; these functions apply to the current device.
cudaError_t lost_context();
void lose_context(cudaError_t error);
void restore_context();

}  // namespace cuda_on_cpu
