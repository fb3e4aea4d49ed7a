// What the copies of the runtime API check before they start.
#pragma once

#include <cstddef>

#include "driver_types.h"

namespace cuda_on_cpu {

// One side of a copy of rows. On a GPU a pointer said to be of the device must be one, and the rows must lie inside its allocation; host
// memory that CUDA knows nothing of cannot be checked.
struct Side {
    const char* name;
    const void* pointer;
    std::size_t pitch;
    bool on_device;
};

// `extent`: bytes from the first to the last one that is copied.
cudaError_t check_side(const char* function, const Side& side, std::size_t extent);
// A copy "to the device" does not go to host memory, even if it is registered.
cudaError_t check_direction(const char* function, const Side& side);

}  // namespace cuda_on_cpu
