// The driver API: streams and events.
#include <cstdint>
#include <cstring>
#include <memory>

#include "cuda_runtime_api.h"
#include "driver.hpp"

using namespace cuda_on_cpu;

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    return result_of(cudaStreamCreateWithFlags(stream, flags));
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    return result_of(cudaStreamCreateWithPriority(stream, flags, priority));
}

CUresult cuStreamDestroy(CUstream stream) {
    return result_of(cudaStreamDestroy(stream));
}

CUresult cuStreamSynchronize(CUstream stream) {
    return result_of(cudaStreamSynchronize(stream));
}

CUresult cuStreamQuery(CUstream stream) {
    return result_of(cudaStreamQuery(stream));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    return result_of(cudaStreamWaitEvent(stream, event, flags));
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user_data, unsigned) {
    if (callback == nullptr) return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "the callback is null");
    struct Call {
        CUstream stream;
        CUstreamCallback callback;
        void* user_data;
    };
    const auto run = [](void* data) {
        const std::unique_ptr<Call> call(static_cast<Call*>(data));
        call->callback(call->stream, CUDA_SUCCESS, call->user_data);
    };
    return result_of(cudaLaunchHostFunc(stream, run, new Call{stream, callback, user_data}));
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
    return result_of(cudaLaunchHostFunc(stream, function, user_data));
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    return result_of(cudaEventCreateWithFlags(event, flags));
}

CUresult cuEventDestroy(CUevent event) {
    return result_of(cudaEventDestroy(event));
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    return result_of(cudaEventRecord(event, stream));
}

CUresult cuEventSynchronize(CUevent event) {
    return result_of(cudaEventSynchronize(event));
}

CUresult cuEventQuery(CUevent event) {
    return result_of(cudaEventQuery(event));
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
    return result_of(cudaIpcGetMemHandle(reinterpret_cast<cudaIpcMemHandle_t*>(handle),
                                         reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer))));
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
    if (pointer == nullptr)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "the pointer to set is null");
    cudaIpcMemHandle_t same;
    static_assert(sizeof same == sizeof handle);
    std::memcpy(&same, &handle, sizeof same);
    void* opened = nullptr;
    const CUresult result = result_of(cudaIpcOpenMemHandle(&opened, same, flags));
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<std::uintptr_t>(opened);
    return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    return result_of(cudaIpcCloseMemHandle(reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer))));
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
    return result_of(cudaIpcGetEventHandle(reinterpret_cast<cudaIpcEventHandle_t*>(handle), event));
}

CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
    cudaIpcEventHandle_t same;
    static_assert(sizeof same == sizeof handle);
    std::memcpy(&same, &handle, sizeof same);
    return result_of(cudaIpcOpenEventHandle(event, same));
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return result_of(cudaEventElapsedTime(milliseconds, start, end));
}
