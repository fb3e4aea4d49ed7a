// What the copies of the runtime API check before they start.
#pragma once

#include <cstddef>

#include "driver_types.h"

namespace cuda_on_cpu {

// The bytes that a copy reads or writes, those between its rows included. On a GPU memory said to
// be of the device must be, and the bytes must lie inside one allocation; host memory that CUDA
// knows nothing of cannot be checked. `name` of the argument: "destination".
cudaError_t check_copied(const char* function, const char* name, const void* pointer, bool on_device,
                         std::size_t bytes);

}  // namespace cuda_on_cpu
