// Checks of a device in the runtime's functions: that it exists, and that it is a peer.
#pragma once

#include "driver_types.h"

namespace cuda_on_cpu {

// Returns cudaErrorInvalidDevice and prints a message if there is no such device.
cudaError_t expect_device(const char* function, int device);

// From the current device to `peer`.
cudaError_t enable_peer_access(const char* function, int peer);
cudaError_t disable_peer_access(const char* function, int peer);

}  // namespace cuda_on_cpu
