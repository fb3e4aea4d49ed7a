// Kernels for launch_test.cpp, and course::launch and course::allow_shared_bytes for them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"

namespace course::testing {

inline constexpr std::size_t kStaticSharedBytes = 4096;

// One of several identical kernels, each with its own kStaticSharedBytes. The tests need several
// kernels because the allowed size of a kernel stays set.
struct LaunchedKernel {
    // out[i] = value + i, computed through static shared memory and the last of `dynamic_bytes`;
    // `threads` per block.
    void (*launch)(unsigned threads, std::size_t dynamic_bytes, cudaStream_t stream, DeviceSpan<int> out,
                   int value);
    void (*allow)(std::size_t dynamic_bytes);
    std::size_t (*allowed)();  // dynamic bytes
};
LaunchedKernel launched_kernel(int number);  // 0 to 3

}  // namespace course::testing
