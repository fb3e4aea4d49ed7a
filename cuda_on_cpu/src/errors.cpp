#include "errors.hpp"

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "child_grids.hpp"
#include "cuda_on_cpu/removed_names.h"
#include "cuda_runtime_api.h"
#include "current_device.hpp"

namespace cuda_on_cpu {
namespace {

constinit thread_local cudaError_t last_error = cudaSuccess;
std::array<std::atomic<cudaError_t>, kMostDevices> lost{};  // each device has its own context
std::atomic<bool> a_kernel_has_failed{false};
// A lost context counts as the last error of each host thread until it has asked.
std::atomic<unsigned> losses{0};
constinit thread_local unsigned losses_told = 0;

bool loss_is_untold() {
    return lost_context() != cudaSuccess && losses_told != losses.load(std::memory_order_relaxed);
}

struct ErrorText {
    cudaError_t error;
    const char* name;
    const char* text;
};

#define CUDA_ON_CPU_ERROR(code, text) \
    ErrorText {                       \
        code, #code, text             \
    }
constexpr ErrorText kErrors[] = {
    CUDA_ON_CPU_ERROR(cudaSuccess, "no error"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidValue, "invalid argument"),
    CUDA_ON_CPU_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    CUDA_ON_CPU_ERROR(cudaErrorInitializationError, "initialization error"),
    CUDA_ON_CPU_ERROR(cudaErrorCudartUnloading, "driver shutting down"),
    CUDA_ON_CPU_ERROR(cudaErrorProfilerDisabled, "profiler disabled while using external profiling tool"),
    CUDA_ON_CPU_ERROR(cudaErrorProfilerNotInitialized,
                      "profiler not initialized: call cudaProfilerInitialize()"),
    CUDA_ON_CPU_ERROR(cudaErrorProfilerAlreadyStarted, "profiler already started"),
    CUDA_ON_CPU_ERROR(cudaErrorProfilerAlreadyStopped, "profiler already stopped"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidHostPointer, "invalid host pointer"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidTexture, "invalid texture reference"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidTextureBinding, "texture is not bound to a pointer"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    CUDA_ON_CPU_ERROR(cudaErrorAddressOfConstant, "invalid address of constant"),
    CUDA_ON_CPU_ERROR(cudaErrorTextureFetchFailed, "fetch from texture failed"),
    CUDA_ON_CPU_ERROR(cudaErrorTextureNotBound, "cannot fetch from a texture that is not bound"),
    CUDA_ON_CPU_ERROR(cudaErrorSynchronizationError, "incorrect use of __syncthreads()"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidFilterSetting, "linear filtering not supported for non-float type"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidNormSetting, "read as normalized float not supported for data type"),
    CUDA_ON_CPU_ERROR(cudaErrorMixedDeviceExecution,
                      "device emulation mode and device execution mode cannot be mixed"),
    CUDA_ON_CPU_ERROR(cudaErrorNotYetImplemented, "feature not yet implemented"),
    CUDA_ON_CPU_ERROR(cudaErrorMemoryValueTooLarge,
                      "memory size or pointer value too large to fit in 32 bit"),
    CUDA_ON_CPU_ERROR(cudaErrorStubLibrary, "CUDA driver is a stub library"),
    CUDA_ON_CPU_ERROR(cudaErrorInsufficientDriver,
                      "CUDA driver version is insufficient for CUDA runtime version"),
    CUDA_ON_CPU_ERROR(cudaErrorCallRequiresNewerDriver,
                      "API call is not supported in the installed CUDA driver"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidSurface, "invalid surface reference"),
    CUDA_ON_CPU_ERROR(cudaErrorDuplicateVariableName, "duplicate global variable looked up by string name"),
    CUDA_ON_CPU_ERROR(cudaErrorDuplicateTextureName, "duplicate texture looked up by string name"),
    CUDA_ON_CPU_ERROR(cudaErrorDuplicateSurfaceName, "duplicate surface looked up by string name"),
    CUDA_ON_CPU_ERROR(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    CUDA_ON_CPU_ERROR(cudaErrorIncompatibleDriverContext, "incompatible driver context"),
    CUDA_ON_CPU_ERROR(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    CUDA_ON_CPU_ERROR(cudaErrorPriorLaunchFailure, "unspecified launch failure in prior launch"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchMaxDepthExceeded,
                      "launch would exceed maximum depth of nested launches"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchFileScopedTex,
                      "launch failed because kernel uses unsupported, file-scoped textures (texture objects "
                      "are supported)"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchFileScopedSurf,
                      "launch failed because kernel uses unsupported, file-scoped surfaces (surface objects "
                      "are supported)"),
    CUDA_ON_CPU_ERROR(
        cudaErrorSyncDepthExceeded,
        "cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchPendingCountExceeded,
                      "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    CUDA_ON_CPU_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    CUDA_ON_CPU_ERROR(cudaErrorDeviceNotLicensed, "device doesn't have valid Grid license"),
    CUDA_ON_CPU_ERROR(cudaErrorSoftwareValidityNotEstablished, "integrity checks failed"),
    CUDA_ON_CPU_ERROR(cudaErrorStartupFailure, "startup failure in cuda runtime"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    CUDA_ON_CPU_ERROR(cudaErrorDeviceUninitialized, "invalid device context"),
    CUDA_ON_CPU_ERROR(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    CUDA_ON_CPU_ERROR(cudaErrorUnmapBufferObjectFailed, "unmapping of buffer object failed"),
    CUDA_ON_CPU_ERROR(cudaErrorArrayIsMapped, "array is mapped"),
    CUDA_ON_CPU_ERROR(cudaErrorAlreadyMapped, "resource already mapped"),
    CUDA_ON_CPU_ERROR(cudaErrorNoKernelImageForDevice,
                      "no kernel image is available for execution on the device"),
    CUDA_ON_CPU_ERROR(cudaErrorAlreadyAcquired, "resource already acquired"),
    CUDA_ON_CPU_ERROR(cudaErrorNotMapped, "resource not mapped"),
    CUDA_ON_CPU_ERROR(cudaErrorNotMappedAsArray, "resource not mapped as array"),
    CUDA_ON_CPU_ERROR(cudaErrorNotMappedAsPointer, "resource not mapped as pointer"),
    CUDA_ON_CPU_ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    CUDA_ON_CPU_ERROR(cudaErrorUnsupportedLimit, "limit is not supported on this architecture"),
    CUDA_ON_CPU_ERROR(cudaErrorDeviceAlreadyInUse,
                      "exclusive-thread device already in use by a different thread"),
    CUDA_ON_CPU_ERROR(cudaErrorPeerAccessUnsupported,
                      "peer access is not supported between these two devices"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidPtx, "a PTX JIT compilation failed"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidGraphicsContext, "invalid OpenGL or DirectX context"),
    CUDA_ON_CPU_ERROR(cudaErrorNvlinkUncorrectable,
                      "uncorrectable NVLink error detected during the execution"),
    CUDA_ON_CPU_ERROR(cudaErrorJitCompilerNotFound, "PTX JIT compiler library not found"),
    CUDA_ON_CPU_ERROR(cudaErrorUnsupportedPtxVersion,
                      "the provided PTX was compiled with an unsupported toolchain."),
    CUDA_ON_CPU_ERROR(cudaErrorJitCompilationDisabled, "PTX JIT compilation was disabled"),
    CUDA_ON_CPU_ERROR(cudaErrorUnsupportedExecAffinity, "the provided execution affinity is not supported"),
    CUDA_ON_CPU_ERROR(cudaErrorUnsupportedDevSideSync,
                      "the provided PTX contains unsupported call to cudaDeviceSynchronize"),
    CUDA_ON_CPU_ERROR(cudaErrorContained,
                      "Invalid access of peer GPU memory over nvlink or a hardware error"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidSource, "device kernel image is invalid"),
    CUDA_ON_CPU_ERROR(cudaErrorFileNotFound, "file not found"),
    CUDA_ON_CPU_ERROR(cudaErrorSharedObjectSymbolNotFound, "shared object symbol not found"),
    CUDA_ON_CPU_ERROR(cudaErrorSharedObjectInitFailed, "shared object initialization failed"),
    CUDA_ON_CPU_ERROR(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    CUDA_ON_CPU_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    CUDA_ON_CPU_ERROR(cudaErrorLossyQuery, "attempted introspection would be semantically lossy"),
    CUDA_ON_CPU_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    CUDA_ON_CPU_ERROR(cudaErrorNotReady, "device not ready"),
    CUDA_ON_CPU_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchIncompatibleTexturing, "launch uses incompatible texturing mode"),
    CUDA_ON_CPU_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    CUDA_ON_CPU_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    CUDA_ON_CPU_ERROR(cudaErrorSetOnActiveProcess, "cannot set while device is active in this process"),
    CUDA_ON_CPU_ERROR(cudaErrorContextIsDestroyed, "context is destroyed"),
    CUDA_ON_CPU_ERROR(cudaErrorAssert, "device-side assert triggered"),
    CUDA_ON_CPU_ERROR(cudaErrorTooManyPeers, "peer mapping resources exhausted"),
    CUDA_ON_CPU_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                      "part or all of the requested memory range is already mapped"),
    CUDA_ON_CPU_ERROR(cudaErrorHostMemoryNotRegistered,
                      "pointer does not correspond to a registered memory region"),
    CUDA_ON_CPU_ERROR(cudaErrorHardwareStackError, "hardware stack error"),
    CUDA_ON_CPU_ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    CUDA_ON_CPU_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidPc, "invalid program counter"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    CUDA_ON_CPU_ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    CUDA_ON_CPU_ERROR(cudaErrorTensorMemoryLeak, "tensor memory not completely freed"),
    CUDA_ON_CPU_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    CUDA_ON_CPU_ERROR(cudaErrorNotSupported, "operation not supported"),
    CUDA_ON_CPU_ERROR(cudaErrorSystemNotReady, "system not yet initialized"),
    CUDA_ON_CPU_ERROR(cudaErrorSystemDriverMismatch,
                      "system has unsupported display driver / cuda driver combination"),
    CUDA_ON_CPU_ERROR(cudaErrorCompatNotSupportedOnDevice,
                      "forward compatibility was attempted on non supported HW"),
    CUDA_ON_CPU_ERROR(cudaErrorMpsConnectionFailed,
                      "MPS client failed to connect to the MPS control daemon or the MPS server"),
    CUDA_ON_CPU_ERROR(cudaErrorMpsRpcFailure,
                      "the remote procedural call between the MPS server and the MPS client failed"),
    CUDA_ON_CPU_ERROR(cudaErrorMpsServerNotReady,
                      "MPS server is not ready to accept new MPS client requests"),
    CUDA_ON_CPU_ERROR(cudaErrorMpsMaxClientsReached,
                      "the hardware resources required to create MPS client have been exhausted"),
    CUDA_ON_CPU_ERROR(cudaErrorMpsMaxConnectionsReached,
                      "the hardware resources required to support device connections have been exhausted"),
    CUDA_ON_CPU_ERROR(cudaErrorMpsClientTerminated, "the MPS client has been terminated by the server"),
    CUDA_ON_CPU_ERROR(
        cudaErrorCdpNotSupported,
        "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it"),
    CUDA_ON_CPU_ERROR(cudaErrorCdpVersionMismatch,
                      "unsupported interaction between different versions of CUDA Dynamic Parallelism"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureInvalidated,
                      "operation failed due to a previous error during capture"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureMerge,
                      "operation would result in a merge of separate capture sequences"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureUnmatched,
                      "capture was not ended in the same stream as it began"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureIsolation,
                      "dependency created on uncaptured work in another stream"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureImplicit,
                      "operation would make the legacy stream depend on a capturing blocking stream"),
    CUDA_ON_CPU_ERROR(cudaErrorCapturedEvent,
                      "operation not permitted on an event last recorded in a capturing stream"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureWrongThread,
                      "attempt to terminate a thread-local capture sequence from another thread"),
    CUDA_ON_CPU_ERROR(cudaErrorTimeout, "wait operation timed out"),
    CUDA_ON_CPU_ERROR(cudaErrorGraphExecUpdateFailure,
                      "the graph update was not performed because it included changes which violated "
                      "constraints specific to instantiated graph update"),
    CUDA_ON_CPU_ERROR(cudaErrorExternalDevice,
                      "an async error has occured in external entity outside of CUDA"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidClusterSize,
                      "a kernel launch error has occurred due to cluster misconfiguration"),
    CUDA_ON_CPU_ERROR(
        cudaErrorFunctionNotLoaded,
        "the function handle is not loaded when calling an API that requires a loaded function"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidResourceType,
                      "one or more resources passed in are not valid resource types for the operation"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidResourceConfiguration,
                      "one or more resources are insufficient or non-applicable for the operation"),
    CUDA_ON_CPU_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef CUDA_ON_CPU_ERROR

const ErrorText* find(cudaError_t error) {
    for (const ErrorText& known : kErrors) {
        if (known.error == error) return &known;
    }
    return nullptr;
}

}  // namespace

cudaError_t set_last_error(cudaError_t error) {
    if (error == cudaSuccess) return error;
    if (in_kernel()) {
        set_last_error_by_kernel(error);
    } else {
        last_error = error;
    }
    return error;
}

cudaError_t refuse(cudaError_t error, const char* function, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    char message[1024];
    std::vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "cuda_on_cpu: %s: %s (%s)\n", function, message, cudaGetErrorName(error));
    return set_last_error(error);
}

void tell_of_removed_name(const char* name, const char* instead) {
    static std::mutex mutex;
    // Never destroyed, because destructors of static objects may get here.
    static std::set<std::string>& told = *new std::set<std::string>;
    const std::scoped_lock lock(mutex);
    if (!told.insert(name).second) return;
    std::fprintf(stderr, "cuda_on_cpu: %s: CUDA 13 has this no more: use %s\n", name, instead);
}

bool must_be_refused(RefusedCall call) {
    static std::atomic<unsigned> calls{0};
    const Refusal& refusal = environment().refusal;
    return refusal.number != 0 && refusal.call == call && ++calls == refusal.number;
}

cudaError_t lost_context() {
    return lost[static_cast<std::size_t>(current_device())].load(std::memory_order_relaxed);
}

void lose_context(cudaError_t error) {
    cudaError_t none = cudaSuccess;
    if (lost[static_cast<std::size_t>(current_device())].compare_exchange_strong(none, error)) ++losses;
    a_kernel_has_failed = true;
}

void restore_context() {
    lost[static_cast<std::size_t>(current_device())] = cudaSuccess;
    last_error = cudaSuccess;
}

}  // namespace cuda_on_cpu

// LeakSanitizer calls this at the end. The threads of a failed kernel stop in the middle, so what
// they own is never freed.
extern "C" int __lsan_is_turned_off();
int __lsan_is_turned_off() {
    return cuda_on_cpu::a_kernel_has_failed ? 1 : 0;
}

cudaError_t cudaGetLastError() {
    if (cuda_on_cpu::in_kernel()) return cuda_on_cpu::last_error_by_kernel(true);
    const cudaError_t error = cudaPeekAtLastError();
    cuda_on_cpu::last_error = cudaSuccess;
    if (cuda_on_cpu::lost_context() != cudaSuccess) cuda_on_cpu::losses_told = cuda_on_cpu::losses;
    return error;
}

cudaError_t cudaPeekAtLastError() {
    if (cuda_on_cpu::in_kernel()) return cuda_on_cpu::last_error_by_kernel(false);
    return cuda_on_cpu::loss_is_untold() ? cuda_on_cpu::lost_context() : cuda_on_cpu::last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
    const auto* known = cuda_on_cpu::find(error);
    return known != nullptr ? known->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
    const auto* known = cuda_on_cpu::find(error);
    return known != nullptr ? known->text : "unrecognized error code";
}
