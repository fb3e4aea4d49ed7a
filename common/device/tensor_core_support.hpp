// Why a kernel cannot run on this GPU: one that needs much shared memory, tensor cores and
// asynchronous copies as well, or bulk copies.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "common/check/check.hpp"

namespace course {

// "" if a block that may have `there` bytes of shared memory has `needed`, static and dynamic.
inline std::string why_too_little_shared(std::size_t there, std::size_t needed) {
    if (needed <= there) return "";
    return "needs " + std::to_string(needed) + " bytes of shared memory in a block; this GPU has " +
           std::to_string(there);
}

// The same for the current device. CudaError when that cannot be asked.
inline std::string why_too_little_shared(std::size_t needed) {
    int device = 0;
    int most = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return why_too_little_shared(static_cast<std::size_t>(most), needed);
}

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
    return why_too_little_shared(there.shared, shared);
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

// "" if code with bulk copies runs on a GPU of that major compute capability. The code is for 9.0a,
// which no later GPU runs.
inline std::string why_no_bulk_copies(int major) {
    if (major == 9) return "";
    return "needs bulk copies, in code for compute capability 9.0; this GPU has " + std::to_string(major) +
           ".x";
}

// The same for the current device. CudaError when that cannot be asked.
inline std::string why_no_bulk_copies() {
    int device = 0;
    int major = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    return why_no_bulk_copies(major);
}

}  // namespace course
