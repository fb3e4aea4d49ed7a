// One kernel launch with its checks. A launcher says what its grid is; this does the rest.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "common/check/check.hpp"

namespace course {

// A block has 48 KB of shared memory, and more only when the kernel asks for it beforehand. Above that limit this asks.
// The limit holds for static and dynamic shared memory together. `static_bytes` is what the kernel declares without
// `extern`, or an upper bound of it.
template <class... Parameters>
void allow_shared_bytes(void (*kernel)(Parameters...), std::size_t dynamic_bytes,
                        std::size_t static_bytes = 0) {
    constexpr std::size_t kWithoutAsking = 48 * 1024;
    if (static_bytes + dynamic_bytes <= kWithoutAsking) return;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(dynamic_bytes)));
}

struct LaunchConfig {
    dim3 grid;                     // blocks
    dim3 block;                    // threads of a block
    std::size_t shared_bytes = 0;  // dynamic shared memory of a block
    cudaStream_t stream = nullptr;
};

// kernel<<<grid, block, shared_bytes, stream>>>(arguments...). Throws CudaError when the launch is refused.
template <class... Parameters>
void launch(void (*kernel)(Parameters...), const LaunchConfig& config,
            const std::type_identity_t<Parameters>&... arguments) {
    allow_shared_bytes(kernel, config.shared_bytes);
    kernel<<<config.grid, config.block, config.shared_bytes, config.stream>>>(arguments...);
    CUDA_CHECK_LAUNCH();
}

}  // namespace course
