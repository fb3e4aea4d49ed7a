// A cooperative launch, for kernels with a barrier of the whole grid.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace day36 {

// A launch with as many blocks as the device can run at the same time.
template <class... Parameters>
void launch_resident(void (*kernel)(Parameters...), unsigned threads, cudaStream_t stream,
                     std::type_identity_t<Parameters>... arguments) {
    void* pointers[] = {&arguments...};
    const unsigned blocks = course::resident_blocks(kernel, static_cast<int>(threads));
    CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(threads),
                                           pointers, 0, stream));
}

}  // namespace day36
