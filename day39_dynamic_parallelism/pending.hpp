// Room for child grids.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/check/check.hpp"

namespace day39 {

// Child grids that may wait to begin: 2,048, unless the host asks for more before the launch.
inline void allow_pending(std::size_t launches) {
    std::size_t allowed = 0;
    CUDA_CHECK(cudaDeviceGetLimit(&allowed, cudaLimitDevRuntimePendingLaunchCount));
    if (allowed < launches) CUDA_CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, launches));
}

}  // namespace day39
