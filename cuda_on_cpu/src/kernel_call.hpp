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
    RunBlock run_block = nullptr;
    cudaError_t error = cudaSuccess;
    std::vector<NamedAddress> addresses;
    unsigned nesting = 0;  // as in LaunchState
};

// Combines kernel_at(function) with the arguments at these addresses. Reports an error of `caller`
// if the function is not a kernel or has unnamed parameters, whose types are not known.
cudaError_t call_by_address(const char* caller, const void* function, void** arguments, KernelCall* call);

// Returns the errors with which a GPU refuses a launch. Completes the configuration.
cudaError_t check_launch(const KernelCall& call, LaunchConfiguration* configuration);
StreamOperation launch_operation(KernelCall call, const LaunchConfiguration& configuration);

}  // namespace cuda_on_cpu
