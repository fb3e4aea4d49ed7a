// A kernel with its arguments, ready to be launched.
#pragma once

#include <memory>
#include <vector>

#include "cuda_on_cpu/launch.h"
#include "launch_state.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {

struct KernelCall {
    Kernel* kernel = nullptr;
    std::shared_ptr<const void> closure;
    void (*run)(const void*) = nullptr;
    cudaError_t error = cudaSuccess;
    std::vector<NamedAddress> addresses;
};

// What kernel_at(function) is with the arguments at these addresses. Errors of `caller`: not a
// kernel, or one with unnamed parameters, whose types are not known.
cudaError_t call_by_address(const char* caller, const void* function, void** arguments, KernelCall* call);

// What a GPU refuses before it starts a kernel. Completes the configuration.
cudaError_t check_launch(const KernelCall& call, LaunchConfiguration* configuration);
StreamOperation launch_operation(KernelCall call, const LaunchConfiguration& configuration);

}  // namespace cuda_on_cpu
