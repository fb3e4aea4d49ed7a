// Reasons why a kernel cannot run on this GPU: too little shared memory, no tensor cores and
// asynchronous copies, or no bulk copies.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "common/check/check.hpp"

namespace course {

// "" if a block that needs `needed` bytes of shared memory, static and dynamic, fits into the
// `there` bytes that a block may have.
inline std::string why_too_little_shared(std::size_t there, std::size_t needed) {
    if (needed <= there) return "";
    return "needs " + std::to_string(needed) + " bytes of shared memory in a block; this GPU has " +
           std::to_string(there);
}

// The same for the current device. Throws CudaError if the device cannot be queried.
inline std::string why_too_little_shared(std::size_t needed) {
    int device = 0;
    int most = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return why_too_little_shared(static_cast<std::size_t>(most), needed);
}

// The capabilities of a GPU and of a kernel's code.
struct TensorCoreSupport {
    int major = 0;           // compute capability
    int built_for = 0;       // the compute capability that the code was built for, times ten
    std::size_t shared = 0;  // bytes that a block may have
};

// "" if a kernel with `shared` bytes of shared memory per block can run there. Code that was built
// for older GPUs and translated by the driver has no tensor-core instructions.
inline std::string why_no_tensor_cores(const TensorCoreSupport& there, std::size_t shared) {
    if (there.major < 8 || there.built_for < 80)
        return "needs tensor cores: compute capability 8.0, and code built for it; this GPU has " +
               std::to_string(there.major) + ".x, the code is for " + std::to_string(there.built_for / 10) +
               ".x";
    return why_too_little_shared(there.shared, shared);
}

// The same for `kernel`, launched with `dynamic_shared` bytes on the current device. Throws
// CudaError if the device or the kernel cannot be queried.
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

// "" if code with bulk copies can run on a GPU of this major compute capability. The code is built
// for 9.0a, which later GPUs do not support.
inline std::string why_no_bulk_copies(int major) {
    if (major == 9) return "";
    return "needs bulk copies, in code for compute capability 9.0; this GPU has " + std::to_string(major) +
           ".x";
}

// The same for the current device. Throws CudaError if the device cannot be queried.
inline std::string why_no_bulk_copies() {
    int device = 0;
    int major = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    return why_no_bulk_copies(major);
}

}  // namespace course
