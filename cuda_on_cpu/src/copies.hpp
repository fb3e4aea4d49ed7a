// Checks that the copies of the runtime API make before they start.
#pragma once

#include <cstddef>

#include "driver_types.h"

namespace cuda_on_cpu {

// Checks the range that a copy reads or writes, including the gaps between its rows. As on a GPU, a
// device pointer must point to device memory, and the range must lie inside one allocation. Host
// memory that was not allocated by CUDA cannot be checked. `name`: the argument, such as
// "destination".
cudaError_t check_copied(const char* function, const char* name, const void* pointer, bool on_device,
                         std::size_t bytes);

}  // namespace cuda_on_cpu
