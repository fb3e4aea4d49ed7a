// Names that CUDA 13 removed and older programs use. Each one works, and its first call prints the
// replacement. CUDA_ON_CPU_STRICT leaves all of them out, as CUDA 13 does.
#pragma once

#ifndef CUDA_ON_CPU_STRICT

#include "cuda_runtime_api.h"
#if __cplusplus >= 202002L
#include "cuda_on_cpu/warp.h"
#endif

namespace cuda_on_cpu {

// Prints, once for each name: "cuda_on_cpu: cudaThreadExit: CUDA 13 has this no more: use
// cudaDeviceReset".
void tell_of_removed_name(const char* name, const char* instead);

}  // namespace cuda_on_cpu

// --- Runtime API -----------------------------------------------------------------------------------------------------

inline cudaError_t cudaThreadSynchronize() {
    cuda_on_cpu::tell_of_removed_name("cudaThreadSynchronize", "cudaDeviceSynchronize");
    return cudaDeviceSynchronize();
}
inline cudaError_t cudaThreadExit() {
    cuda_on_cpu::tell_of_removed_name("cudaThreadExit", "cudaDeviceReset");
    return cudaDeviceReset();
}
inline cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) {
    cuda_on_cpu::tell_of_removed_name("cudaThreadSetLimit", "cudaDeviceSetLimit");
    return cudaDeviceSetLimit(limit, value);
}
inline cudaError_t cudaThreadGetLimit(size_t* value, cudaLimit limit) {
    cuda_on_cpu::tell_of_removed_name("cudaThreadGetLimit", "cudaDeviceGetLimit");
    return cudaDeviceGetLimit(value, limit);
}
inline cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) {
    cuda_on_cpu::tell_of_removed_name("cudaThreadSetCacheConfig", "cudaDeviceSetCacheConfig");
    return cudaDeviceSetCacheConfig(config);
}

enum cudaSharedMemConfig {
    cudaSharedMemBankSizeDefault = 0,
    cudaSharedMemBankSizeFourByte = 1,
    cudaSharedMemBankSizeEightByte = 2,
};
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
    cuda_on_cpu::tell_of_removed_name("cudaDeviceSetSharedMemConfig", "nothing: banks are four bytes wide");
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
    cuda_on_cpu::tell_of_removed_name("cudaDeviceGetSharedMemConfig", "nothing: banks are four bytes wide");
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}
template <class Function>
cudaError_t cudaFuncSetSharedMemConfig(Function*, cudaSharedMemConfig) {
    cuda_on_cpu::tell_of_removed_name("cudaFuncSetSharedMemConfig", "nothing: banks are four bytes wide");
    return cudaSuccess;
}

// A location used to be the number of a device; cudaCpuDeviceId is the host.
inline cudaMemLocation cuda_on_cpu_location_of(int device) {
    const auto type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    return {type, device == cudaCpuDeviceId ? 0 : device};
}
inline cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device,
                                        cudaStream_t stream = nullptr) {
    cuda_on_cpu::tell_of_removed_name("cudaMemPrefetchAsync with the number of a device",
                                      "a cudaMemLocation");
    return cudaMemPrefetchAsync(pointer, bytes, cuda_on_cpu_location_of(device), 0, stream);
}
template <class Advice>
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, Advice advice, int device) {
    cuda_on_cpu::tell_of_removed_name("cudaMemAdvise with the number of a device", "a cudaMemLocation");
    return cudaMemAdvise(pointer, bytes, advice, cuda_on_cpu_location_of(device));
}

inline cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                           cudaDriverEntryPointQueryResult* status = nullptr) {
    cuda_on_cpu::tell_of_removed_name("cudaGetDriverEntryPoint", "cudaGetDriverEntryPointByVersion");
    return cudaGetDriverEntryPointByVersion(symbol, function, 13000, flags, status);
}

#if __cplusplus >= 202002L
// --- Warp functions without a mask: for the lanes that are converged at the call ---

#define CUDA_ON_CPU_UNMASKED_SHUFFLE(name, Place)                                                            \
    template <class T>                                                                                       \
    T name(T value, Place place, int width = warpSize, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) { \
        static const bool told = (cuda_on_cpu::tell_of_removed_name(#name, #name "_sync"), true);            \
        static_cast<void>(told);                                                                             \
        return name##_sync(cuda_on_cpu::converged_lanes(site), value, place, width, site);                   \
    }
CUDA_ON_CPU_UNMASKED_SHUFFLE(__shfl, int)
CUDA_ON_CPU_UNMASKED_SHUFFLE(__shfl_up, unsigned)
CUDA_ON_CPU_UNMASKED_SHUFFLE(__shfl_down, unsigned)
CUDA_ON_CPU_UNMASKED_SHUFFLE(__shfl_xor, int)
#undef CUDA_ON_CPU_UNMASKED_SHUFFLE

#define CUDA_ON_CPU_UNMASKED_VOTE(Result, name)                                                   \
    inline Result name(int predicate, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {       \
        static const bool told = (cuda_on_cpu::tell_of_removed_name(#name, #name "_sync"), true); \
        static_cast<void>(told);                                                                  \
        return name##_sync(cuda_on_cpu::converged_lanes(site), predicate, site);                  \
    }
CUDA_ON_CPU_UNMASKED_VOTE(int, __all)
CUDA_ON_CPU_UNMASKED_VOTE(int, __any)
CUDA_ON_CPU_UNMASKED_VOTE(unsigned, __ballot)
#undef CUDA_ON_CPU_UNMASKED_VOTE

#endif

#endif
