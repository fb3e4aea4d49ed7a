// Why a kernel that needs tensor cores, asynchronous copies and much shared memory cannot run on
// this GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "common/check/check.hpp"

namespace course {

// What a GPU offers, and a kernel's code.
struct TensorCoreSupport {
    int major = 0;           // compute capability
    int built_for = 0;       // that the code was built for, times ten
    std::size_t shared = 0;  // bytes that a block may have
};

// "" if a kernel with `shared` bytes of shared memory in a block runs there. Code built for older
// GPUs, which the driver has translated for this one, has no instructions for tensor cores.
inline std::string why_no_tensor_cores(const TensorCoreSupport& there, std::size_t shared) {
    if (there.major < 8 || there.built_for < 80)
        return "needs tensor cores: compute capability 8.0, and code built for it; this GPU has " +
               std::to_string(there.major) + ".x, the code is for " + std::to_string(there.built_for / 10) +
               ".x";
    if (there.shared < shared)
        return "needs " + std::to_string(shared) + " bytes of shared memory in a block; this GPU has " +
               std::to_string(there.shared);
    return "";
}

// The same for `kernel`, launched with `dynamic_shared` bytes on the current device. CudaError when
// that cannot be asked.
template <class Kernel>
std::string why_no_tensor_cores(Kernel* kernel, std::size_t dynamic_shared) {
    int device = 0;
    int shared = 0;
    TensorCoreSupport there;
    cudaFuncAttributes attributes{};
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&there.major, cudaDevAttrComputeCapabilityMajor, device));
    CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    there.built_for = attributes.ptxVersion;
    there.shared = static_cast<std::size_t>(shared);
    return why_no_tensor_cores(there, attributes.sharedSizeBytes + dynamic_shared);
}

}  // namespace course
