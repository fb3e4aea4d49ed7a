#include "errors.hpp"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "child_grids.hpp"
#include "cuda_runtime_api.h"

namespace cuda_on_cpu {
namespace {

constinit thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> lost{cudaSuccess};
std::atomic<bool> a_kernel_has_failed{false};

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
    CUDA_ON_CPU_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidTexture, "invalid texture reference"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidFilterSetting, "linear filtering not supported for non-float type"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidNormSetting,
                      "read as normalized float not supported for 32-bit non float type"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    CUDA_ON_CPU_ERROR(cudaErrorInsufficientDriver,
                      "CUDA driver version is insufficient for CUDA runtime version"),
    CUDA_ON_CPU_ERROR(cudaErrorMissingConfiguration, "launch configuration is missing"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    CUDA_ON_CPU_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    CUDA_ON_CPU_ERROR(cudaErrorNoKernelImageForDevice,
                      "no kernel image is available for execution on the device"),
    CUDA_ON_CPU_ERROR(cudaErrorUnsupportedLimit, "limit is not supported on this architecture"),
    CUDA_ON_CPU_ERROR(cudaErrorPeerAccessUnsupported,
                      "peer access is not supported between these two devices"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    CUDA_ON_CPU_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    CUDA_ON_CPU_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    CUDA_ON_CPU_ERROR(cudaErrorNotReady, "device not ready"),
    CUDA_ON_CPU_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    CUDA_ON_CPU_ERROR(cudaErrorAssert, "device-side assert triggered"),
    CUDA_ON_CPU_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                      "part or all of the requested memory range is already mapped"),
    CUDA_ON_CPU_ERROR(cudaErrorHostMemoryNotRegistered,
                      "pointer does not correspond to a registered memory region"),
    CUDA_ON_CPU_ERROR(cudaErrorHardwareStackError, "hardware stack error"),
    CUDA_ON_CPU_ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    CUDA_ON_CPU_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space"),
    CUDA_ON_CPU_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    CUDA_ON_CPU_ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    CUDA_ON_CPU_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    CUDA_ON_CPU_ERROR(cudaErrorNotSupported, "operation not supported"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureInvalidated,
                      "operation failed due to a previous error during capture"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureUnmatched,
                      "capture was not ended in the same stream as it began"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    CUDA_ON_CPU_ERROR(cudaErrorStreamCaptureImplicit,
                      "operation would make the legacy stream depend on a capturing stream"),
    CUDA_ON_CPU_ERROR(cudaErrorCapturedEvent,
                      "operation not permitted on an event last recorded in a capturing stream"),
    CUDA_ON_CPU_ERROR(cudaErrorTimeout, "wait operation timed out"),
    CUDA_ON_CPU_ERROR(
        cudaErrorGraphExecUpdateFailure,
        "the graph update was not performed because it included changes which violated constraints "
        "specific to instantiated graph update"),
    CUDA_ON_CPU_ERROR(cudaErrorInvalidClusterSize, "cluster misconfiguration"),
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

cudaError_t note(cudaError_t error) {
    if (error == cudaSuccess) return error;
    if (kernel_runs()) {
        note_by_kernel(error);
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
    return note(error);
}

cudaError_t lost_context() {
    return lost.load(std::memory_order_relaxed);
}

void lose_context(cudaError_t error) {
    cudaError_t none = cudaSuccess;
    lost.compare_exchange_strong(none, error);
    a_kernel_has_failed = true;
}

void restore_context() {
    lost = cudaSuccess;
    last_error = cudaSuccess;
}

}  // namespace cuda_on_cpu

// LeakSanitizer asks at the end. The threads of a kernel that failed stop where they stand, and what they own there stays.
extern "C" int __lsan_is_turned_off();
int __lsan_is_turned_off() {
    return cuda_on_cpu::a_kernel_has_failed ? 1 : 0;
}

cudaError_t cudaGetLastError() {
    if (cuda_on_cpu::kernel_runs()) return cuda_on_cpu::last_error_by_kernel(true);
    const cudaError_t lost = cuda_on_cpu::lost_context();
    const cudaError_t error = std::exchange(cuda_on_cpu::last_error, cudaSuccess);
    return lost != cudaSuccess ? lost : error;
}

cudaError_t cudaPeekAtLastError() {
    if (cuda_on_cpu::kernel_runs()) return cuda_on_cpu::last_error_by_kernel(false);
    const cudaError_t lost = cuda_on_cpu::lost_context();
    return lost != cudaSuccess ? lost : cuda_on_cpu::last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
    const auto* known = cuda_on_cpu::find(error);
    return known != nullptr ? known->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
    const auto* known = cuda_on_cpu::find(error);
    return known != nullptr ? known->text : "unrecognized error code";
}
