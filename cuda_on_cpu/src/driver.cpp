// The driver API, implemented with the runtime API; both use the same device here. Their errors
// have the same numbers, except those that only the runtime has. This file implements the errors;
// driver.hpp lists the other files.
#include "driver.hpp"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "cuda_runtime_api.h"

namespace cuda_on_cpu {

CUresult result_of(cudaError_t error) {
    if (error != cudaSuccess)
        static_cast<void>(cudaGetLastError());  // this must not become the runtime's last error
    switch (static_cast<int>(error)) {
        case cudaErrorInvalidConfiguration:
        case cudaErrorInvalidPitchValue:
        case cudaErrorInvalidSymbol:
        case cudaErrorInvalidDevicePointer:
        case cudaErrorInvalidTexture:
        case cudaErrorInvalidChannelDescriptor:
        case cudaErrorInvalidMemcpyDirection:
        case cudaErrorInvalidFilterSetting:
        case cudaErrorInvalidNormSetting:
            return CUDA_ERROR_INVALID_VALUE;
        case cudaErrorInvalidDeviceFunction:
            return CUDA_ERROR_INVALID_HANDLE;
        default:
            return static_cast<CUresult>(error);
    }
}

CUresult refuse_call(CUresult error, const char* function, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    char message[1024];
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const char* name = "";
    cuGetErrorName(error, &name);
    std::fprintf(stderr, "cuda_on_cpu: %s: %s (%s)\n", function, message, name);
    return error;
}

char* pointer_of(CUdeviceptr pointer) {
    return reinterpret_cast<char*>(static_cast<std::uintptr_t>(pointer));
}

CUdeviceptr number_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

CUresult cuDriverGetVersion(int* version) {
    return result_of(cudaDriverGetVersion(version));
}

CUresult cuGetErrorName(CUresult error, const char** name) {
#define CUDA_ON_CPU_NAME(code) \
    case code:                 \
        *name = #code;         \
        return CUDA_SUCCESS;
    switch (error) {
        CUDA_ON_CPU_NAME(CUDA_SUCCESS)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_VALUE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_OUT_OF_MEMORY)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NOT_INITIALIZED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_DEINITIALIZED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_PROFILER_DISABLED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_PROFILER_NOT_INITIALIZED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_PROFILER_ALREADY_STARTED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_PROFILER_ALREADY_STOPPED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_STUB_LIBRARY)
        CUDA_ON_CPU_NAME(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER)
        CUDA_ON_CPU_NAME(CUDA_ERROR_DEVICE_UNAVAILABLE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NO_DEVICE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_DEVICE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_DEVICE_NOT_LICENSED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_IMAGE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_CONTEXT)
        CUDA_ON_CPU_NAME(CUDA_ERROR_CONTEXT_ALREADY_CURRENT)
        CUDA_ON_CPU_NAME(CUDA_ERROR_MAP_FAILED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_UNMAP_FAILED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_ARRAY_IS_MAPPED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_ALREADY_MAPPED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NO_BINARY_FOR_GPU)
        CUDA_ON_CPU_NAME(CUDA_ERROR_ALREADY_ACQUIRED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NOT_MAPPED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NOT_MAPPED_AS_ARRAY)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NOT_MAPPED_AS_POINTER)
        CUDA_ON_CPU_NAME(CUDA_ERROR_ECC_UNCORRECTABLE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_UNSUPPORTED_LIMIT)
        CUDA_ON_CPU_NAME(CUDA_ERROR_CONTEXT_ALREADY_IN_USE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_PTX)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NVLINK_UNCORRECTABLE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
        CUDA_ON_CPU_NAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        CUDA_ON_CPU_NAME(CUDA_ERROR_JIT_COMPILATION_DISABLED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY)
        CUDA_ON_CPU_NAME(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC)
        CUDA_ON_CPU_NAME(CUDA_ERROR_CONTAINED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_SOURCE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_FILE_NOT_FOUND)
        CUDA_ON_CPU_NAME(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND)
        CUDA_ON_CPU_NAME(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_OPERATING_SYSTEM)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_HANDLE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_ILLEGAL_STATE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_LOSSY_QUERY)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NOT_FOUND)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NOT_READY)
        CUDA_ON_CPU_NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
        CUDA_ON_CPU_NAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        CUDA_ON_CPU_NAME(CUDA_ERROR_LAUNCH_TIMEOUT)
        CUDA_ON_CPU_NAME(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING)
        CUDA_ON_CPU_NAME(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_CONTEXT_IS_DESTROYED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_ASSERT)
        CUDA_ON_CPU_NAME(CUDA_ERROR_TOO_MANY_PEERS)
        CUDA_ON_CPU_NAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_HARDWARE_STACK_ERROR)
        CUDA_ON_CPU_NAME(CUDA_ERROR_ILLEGAL_INSTRUCTION)
        CUDA_ON_CPU_NAME(CUDA_ERROR_MISALIGNED_ADDRESS)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_ADDRESS_SPACE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_PC)
        CUDA_ON_CPU_NAME(CUDA_ERROR_LAUNCH_FAILED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_TENSOR_MEMORY_LEAK)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NOT_PERMITTED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_NOT_SUPPORTED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_SYSTEM_NOT_READY)
        CUDA_ON_CPU_NAME(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
        CUDA_ON_CPU_NAME(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_MPS_CONNECTION_FAILED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_MPS_RPC_FAILURE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_MPS_SERVER_NOT_READY)
        CUDA_ON_CPU_NAME(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_MPS_CLIENT_TERMINATED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_CDP_NOT_SUPPORTED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_CDP_VERSION_MISMATCH)
        CUDA_ON_CPU_NAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_STREAM_CAPTURE_MERGE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
        CUDA_ON_CPU_NAME(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        CUDA_ON_CPU_NAME(CUDA_ERROR_CAPTURED_EVENT)
        CUDA_ON_CPU_NAME(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        CUDA_ON_CPU_NAME(CUDA_ERROR_TIMEOUT)
        CUDA_ON_CPU_NAME(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_EXTERNAL_DEVICE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_CLUSTER_SIZE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_FUNCTION_NOT_LOADED)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_RESOURCE_TYPE)
        CUDA_ON_CPU_NAME(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
        CUDA_ON_CPU_NAME(CUDA_ERROR_KEY_ROTATION)
        CUDA_ON_CPU_NAME(CUDA_ERROR_UNKNOWN)
        default:
            *name = nullptr;
            return CUDA_ERROR_INVALID_VALUE;
    }
#undef CUDA_ON_CPU_NAME
}

CUresult cuGetErrorString(CUresult error, const char** text) {
    const char* name = nullptr;
    if (const CUresult unknown = cuGetErrorName(error, &name); unknown != CUDA_SUCCESS) {
        *text = nullptr;
        return unknown;
    }
    const char* known = cudaGetErrorString(static_cast<cudaError_t>(error));
    *text = std::strcmp(known, "unrecognized error code") == 0 ? name : known;
    return CUDA_SUCCESS;
}

// Finds the program's own functions: nvcc links programs so that they are found by name.
CUresult cuGetProcAddress(const char* symbol, void** function, int, cuuint64_t, int* status) {
    if (symbol == nullptr || function == nullptr)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "the symbol or the function to set is null");
    *function = dlsym(RTLD_DEFAULT, symbol);
    if (*function == nullptr && std::strcmp(symbol, "cuCtxCreate") == 0)
        *function = reinterpret_cast<void*>(cuCtxCreate_v4);
    if (status != nullptr) *status = *function == nullptr ? 1 : 0;
    return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
