#pragma once

#include <thrust/device_ptr.h>

#include "cuda_runtime_api.h"

THRUST_NAMESPACE_BEGIN

inline void device_free(device_ptr<void> pointer) {
    cudaFree(pointer.get());
}

THRUST_NAMESPACE_END
