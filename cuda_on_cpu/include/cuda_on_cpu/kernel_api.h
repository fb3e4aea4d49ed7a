// The part of the runtime API that takes kernels and symbols by their C++ names.
#pragma once

#include <utility>

#include "cuda_on_cpu/launch.h"
#include "cuda_on_cpu/typed_api.h"
#include "cuda_runtime_api.h"

// --- Kernels ---------------------------------------------------------------------------------------------------------

namespace cuda_on_cpu {

// Finds a kernel by its function, or by the function's address.
template <class... Parameters>
Kernel* find_kernel(void (*function)(Parameters...)) {
    return kernel_of(function);
}
inline Kernel* find_kernel(const void* function) {
    return kernel_at(function);
}

cudaError_t get_attributes(cudaFuncAttributes* attributes, const Kernel* kernel);
cudaError_t set_attribute(Kernel* kernel, cudaFuncAttribute attribute, int value);
cudaError_t max_active_blocks(int* blocks, const Kernel* kernel, int block_size, std::size_t dynamic_shared);
cudaError_t max_potential_block_size(int* min_grid, int* block_size, const Kernel* kernel,
                                     std::size_t dynamic_shared, int limit);
cudaError_t max_active_clusters(int* clusters, const Kernel* kernel, const cudaLaunchConfig_t* config);
cudaError_t launch_untyped(const void* kernel, void** arguments, const LaunchConfiguration& configuration);
cudaError_t configuration_of(const cudaLaunchConfig_t* config, LaunchConfiguration* result);

}  // namespace cuda_on_cpu

template <class Function>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Function* kernel) {
    return cuda_on_cpu::get_attributes(attributes, cuda_on_cpu::find_kernel(kernel));
}
template <class Function>
cudaError_t cudaFuncSetAttribute(Function* kernel, cudaFuncAttribute attribute, int value) {
    return cuda_on_cpu::set_attribute(cuda_on_cpu::find_kernel(kernel), attribute, value);
}
template <class Function>
cudaError_t cudaFuncSetCacheConfig(Function* kernel, cudaFuncCache) {
    cudaFuncAttributes ignored;
    return cuda_on_cpu::get_attributes(&ignored, cuda_on_cpu::find_kernel(kernel));
}

template <class Function>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function* kernel, int block_size,
                                                          std::size_t dynamic_shared) {
    return cuda_on_cpu::max_active_blocks(blocks, cuda_on_cpu::find_kernel(kernel), block_size,
                                          dynamic_shared);
}
template <class Function>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* min_grid, int* block_size, Function* kernel,
                                               std::size_t dynamic_shared = 0, int limit = 0) {
    return cuda_on_cpu::max_potential_block_size(min_grid, block_size, cuda_on_cpu::find_kernel(kernel),
                                                 dynamic_shared, limit);
}
template <class Function>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, Function* kernel,
                                           const cudaLaunchConfig_t* config) {
    return cuda_on_cpu::max_active_clusters(clusters, cuda_on_cpu::find_kernel(kernel), config);
}

inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t dynamic_shared = 0, cudaStream_t stream = nullptr) {
    return cuda_on_cpu::launch_untyped(
        kernel, arguments,
        {.grid = grid, .block = block, .dynamic_shared = dynamic_shared, .stream = stream});
}
template <class... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                             std::size_t dynamic_shared = 0, cudaStream_t stream = nullptr) {
    cuda_on_cpu::prepare_from_addresses(kernel, arguments);
    return cuda_on_cpu::launch_prepared(
        {.grid = grid, .block = block, .dynamic_shared = dynamic_shared, .stream = stream});
}
inline cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                               std::size_t dynamic_shared = 0,
                                               cudaStream_t stream = nullptr) {
    return cuda_on_cpu::launch_untyped(kernel, arguments,
                                       {.grid = grid,
                                        .block = block,
                                        .dynamic_shared = dynamic_shared,
                                        .stream = stream,
                                        .cooperative = true});
}
template <class... Parameters>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                        void** arguments, std::size_t dynamic_shared = 0,
                                        cudaStream_t stream = nullptr) {
    cuda_on_cpu::prepare_from_addresses(kernel, arguments);
    return cuda_on_cpu::launch_prepared({.grid = grid,
                                         .block = block,
                                         .dynamic_shared = dynamic_shared,
                                         .stream = stream,
                                         .cooperative = true});
}
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
    cuda_on_cpu::LaunchConfiguration configuration;
    const cudaError_t error = cuda_on_cpu::configuration_of(config, &configuration);
    if (error != cudaSuccess) return error;
    kernel(std::forward<Arguments>(arguments)...);
    return cuda_on_cpu::launch_prepared(configuration);
}
