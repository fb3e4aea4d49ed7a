// Kernel launches with error checks. A launcher provides the grid and the block; these functions
// do the rest.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "common/check/check.hpp"

namespace course {

// A block has at most 48 KB of shared memory, static and dynamic together, unless the kernel opts
// in to more with cudaFuncSetAttribute. Above that limit, this function opts in. A larger limit
// from an earlier call is kept. Throws CudaError if the device has less.
template <class... Parameters>
void allow_shared_bytes(void (*kernel)(Parameters...), std::size_t dynamic_bytes) {
    constexpr std::size_t kWithoutAsking = 48 * 1024;
    if (dynamic_bytes == 0) return;  // nvcc rejects more than 48 KB of static shared memory
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));

    // A call of the runtime takes microseconds, as long as a small kernel. So the runtime is
    // called only for sizes above all earlier ones.
    static std::mutex mutex;
    // The dynamic bytes that are already allowed, for each kernel and device.
    static std::map<std::pair<void (*)(Parameters...), int>, std::size_t> known;
    const std::scoped_lock lock(mutex);
    std::size_t& known_bytes = known[{kernel, device}];
    if (dynamic_bytes <= known_bytes) return;

    cudaFuncAttributes attributes{};
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    const std::size_t static_bytes = attributes.sharedSizeBytes;
    const auto allowed = static_cast<std::size_t>(attributes.maxDynamicSharedSizeBytes);
    // A GPU may report 48 KB as allowed although static arrays take a part of them.
    const bool fits = static_bytes + dynamic_bytes <= kWithoutAsking || allowed > kWithoutAsking;
    if (fits && dynamic_bytes <= allowed) {
        known_bytes = dynamic_bytes;
        return;
    }

    int limit = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    const auto most = static_cast<std::size_t>(limit);
    if (static_bytes + dynamic_bytes > most) {
        throw CudaError(cudaErrorInvalidValue, "launch: a block has " + std::to_string(static_bytes) +
                                                   " bytes of static and " + std::to_string(dynamic_bytes) +
                                                   " bytes of dynamic shared memory; expected at most " +
                                                   std::to_string(most) + " together on this device");
    }
    const std::size_t raised = std::min(std::max(dynamic_bytes, allowed), most - static_bytes);
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(raised)));
    known_bytes = raised;
}

struct LaunchConfig {
    dim3 grid;                     // blocks
    dim3 block;                    // threads of a block
    std::size_t shared_bytes = 0;  // dynamic shared memory of a block
    cudaStream_t stream = nullptr;
};

// Launches kernel<<<grid, block, shared_bytes, stream>>>(arguments...). Throws CudaError when the
// launch fails.
template <class... Parameters>
void launch(void (*kernel)(Parameters...), const LaunchConfig& config,
            const std::type_identity_t<Parameters>&... arguments) {
    allow_shared_bytes(kernel, config.shared_bytes);
    kernel<<<config.grid, config.block, config.shared_bytes, config.stream>>>(arguments...);
    CUDA_CHECK_LAUNCH();
}

// May blocks of `kernel` start before the previous kernel has ended? The GPU needs compute
// capability 9.0, and the code must be built for it: code for an older GPU, translated by the
// driver, does not wait in cudaGridDependencySynchronize().
template <class... Parameters>
bool may_start_early(void (*kernel)(Parameters...)) {
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    static std::mutex mutex;
    static std::map<std::pair<void (*)(Parameters...), int>, bool> known;
    const std::scoped_lock lock(mutex);
    const auto found = known.find({kernel, device});
    if (found != known.end()) return found->second;
    cudaFuncAttributes attributes{};
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    return known[{kernel, device}] = attributes.ptxVersion >= 90;
}

// The same as launch(), but as a programmatic dependent launch if the kernel may_start_early().
// Its blocks may start as soon as all blocks of the previous kernel have called
// cudaTriggerProgrammaticLaunchCompletion() or ended. They must call
// cudaGridDependencySynchronize() before they touch memory.
template <class... Parameters>
void launch_early(void (*kernel)(Parameters...), const LaunchConfig& config,
                  const std::type_identity_t<Parameters>&... arguments) {
    allow_shared_bytes(kernel, config.shared_bytes);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how{};
    how.gridDim = config.grid;
    how.blockDim = config.block;
    how.dynamicSmemBytes = config.shared_bytes;
    how.stream = config.stream;
    how.attrs = &attribute;
    how.numAttrs = may_start_early(kernel) ? 1 : 0;
    CUDA_CHECK(cudaLaunchKernelEx(&how, kernel, arguments...));
}

}  // namespace course
