// The driver API: initialisation, devices and contexts.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <vector>

#include "cuda_runtime_api.h"
#include "current_device.hpp"
#include "device.hpp"
#include "devices.hpp"
#include "driver.hpp"
#include "errors.hpp"
#include "memory.hpp"

namespace cuda_on_cpu {
namespace {

std::atomic<bool> initialised = false;

// One primary context per device.
struct PrimaryContexts {
    PrimaryContexts() {
        for (int device = 0; device < kMostDevices; ++device) {
            of[static_cast<std::size_t>(device)].device = device;
            all.insert(&of[static_cast<std::size_t>(device)]);
        }
    }
    std::array<CUctx_st, kMostDevices> of;
    std::set<CUcontext> all;
};
// Never destroyed, because destructors of static objects may use the driver API. They may run after
// those of this file and after those of the main thread's thread-local objects.
PrimaryContexts& primary_contexts() {
    static PrimaryContexts& only = *new PrimaryContexts;
    return only;
}
std::mutex contexts_mutex;
std::set<CUcontext>& contexts() {
    return primary_contexts().all;
}
// The context stack of this host thread, with its top at the end.
std::vector<CUcontext>& current_contexts() {
    static thread_local std::vector<CUcontext>& own = *new std::vector<CUcontext>;
    return own;
}

// cudaSetDevice() also selects a context: the primary context of its device.
void follow_runtime() {
    if (!current_contexts().empty() && current_contexts().back()->device != current_device())
        current_contexts().back() = &primary_of(current_device());
}

void make_current(CUcontext context) {
    follow_runtime();
    current_contexts().push_back(context);
    device_of_os_thread = context->device;
}

// Has the runtime made the primary context current? It has if it has allocated memory.
bool is_made_by_runtime() {
    return context_made_by_runtime || !live_allocations().empty();
}

// Makes the device of the new top of the stack current, after a context was popped.
void go_on_below() {
    if (!current_contexts().empty()) device_of_os_thread = current_contexts().back()->device;
}

}  // namespace

CUctx_st& primary_of(int device) {
    return primary_contexts().of[static_cast<std::size_t>(device)];
}

CUresult check_device(const char* function, CUdevice device) {
    if (!initialised && !runtime_in_use && live_allocations().empty())
        return refuse_call(CUDA_ERROR_NOT_INITIALIZED, function, "cuInit was not called before");
    if (device >= 0 && device < device_count()) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_DEVICE, function, "device %d; there %s %d, from 0", device,
                       device_count() == 1 ? "is" : "are", device_count());
}

CUresult check_context(const char* function, CUcontext context) {
    const std::scoped_lock lock(contexts_mutex);
    if (contexts().contains(context)) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_CONTEXT, function, "context %p does not exist",
                       static_cast<void*>(context));
}

CUresult check_current(const char* function) {
    if (!initialised || !current_contexts().empty() || primary_of(current_device()).references > 0)
        return CUDA_SUCCESS;
    if (is_made_by_runtime()) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_CONTEXT, function,
                       "this host thread has no current context; expected cuCtxCreate, or "
                       "cuDevicePrimaryCtxRetain and cuCtxSetCurrent, before");
}

CUcontext current_context() {
    follow_runtime();
    if (!current_contexts().empty()) return current_contexts().back();
    const bool of_runtime = is_made_by_runtime() || !initialised;
    return of_runtime ? &primary_of(current_device()) : nullptr;
}

namespace {

CUresult create_context(const char* function, CUcontext* context, unsigned flags, CUdevice device) {
    if (const CUresult error = check_device(function, device); error != CUDA_SUCCESS) return error;
    if (context == nullptr)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "the context to set is null");
    *context = new CUctx_st{device, flags};
    make_current(*context);
    const std::scoped_lock lock(contexts_mutex);
    contexts().insert(*context);
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

CUresult cuInit(unsigned flags) {
    if (flags != 0) return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "flags are %u; expected 0", flags);
    initialised = true;
    return CUDA_SUCCESS;
}

// --- Devices -------------------------------------------------------------------------------------

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    CUDA_ON_CPU_CHECK(check_device(__func__, ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    CUDA_ON_CPU_CHECK(check_device(__func__, 0));
    return result_of(cudaGetDeviceCount(count));
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    CUDA_ON_CPU_CHECK(check_device(__func__, device));
    cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess && length > 0)
        std::snprintf(name, static_cast<std::size_t>(length), "%s", properties.name);
    return result_of(error);
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    CUDA_ON_CPU_CHECK(check_device(__func__, device));
    *uuid = {};
    if (several_devices()) uuid->bytes[15] = static_cast<char>(device + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
    CUDA_ON_CPU_CHECK(check_device(__func__, device));
    *bytes = total_bytes();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    CUDA_ON_CPU_CHECK(check_device(__func__, device));
    // Attributes that only the driver API has.
    switch (static_cast<int>(attribute)) {
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED:  // the property is only stored and returned
            *value = 1;
            return CUDA_SUCCESS;
        case 104:  // handles of Windows
        case 105:
            *value = 0;
            return CUDA_SUCCESS;
        default:
            break;
    }
    return result_of(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    CUDA_ON_CPU_CHECK(cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    return cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device,
                                 CUdevice peer) {
    return result_of(
        cudaDeviceGetP2PAttribute(value, static_cast<cudaDeviceP2PAttr>(attribute), device, peer));
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    CUDA_ON_CPU_CHECK(check_context(__func__, peer));
    if (flags != 0) return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "flags are %u; expected 0", flags);
    return result_of(enable_peer_access(__func__, peer->device));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    CUDA_ON_CPU_CHECK(check_context(__func__, peer));
    return result_of(disable_peer_access(__func__, peer->device));
}

CUresult cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer) {
    return result_of(cudaDeviceCanAccessPeer(can_access, device, peer));
}

// --- Contexts ------------------------------------------------------------------------------------

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    CUDA_ON_CPU_CHECK(check_device(__func__, device));
    ++primary_of(device).references;
    *context = &primary_of(device);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    CUDA_ON_CPU_CHECK(check_device(__func__, device));
    if (primary_of(device).references == 0)
        return refuse_call(CUDA_ERROR_INVALID_CONTEXT, __func__, "the primary context was not retained");
    --primary_of(device).references;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    CUDA_ON_CPU_CHECK(check_device(__func__, device));
    const DeviceScope scope(device);
    return result_of(cudaDeviceReset());
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
    CUDA_ON_CPU_CHECK(check_device(__func__, device));
    primary_of(device).flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    CUDA_ON_CPU_CHECK(check_device(__func__, device));
    if (flags != nullptr) *flags = primary_of(device).flags;
    if (active != nullptr) *active = primary_of(device).references > 0 || !live_allocations().empty();
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
    return create_context("cuCtxCreate", context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
    if (parameters != nullptr && (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr))
        return refuse_call(CUDA_ERROR_NOT_SUPPORTED, "cuCtxCreate",
                           "a context with a part of the multiprocessors, or for graphics");
    return create_context("cuCtxCreate", context, flags, device);
}

CUresult cuCtxDestroy(CUcontext context) {
    CUDA_ON_CPU_CHECK(check_context(__func__, context));
    if (context == &primary_of(context->device))
        return refuse_call(CUDA_ERROR_INVALID_CONTEXT, __func__,
                           "the primary context is given back by cuDevicePrimaryCtxRelease");
    std::erase(current_contexts(), context);
    go_on_below();
    const std::scoped_lock lock(contexts_mutex);
    contexts().erase(context);
    delete context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
    CUDA_ON_CPU_CHECK(check_context(__func__, context));
    make_current(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
    if (current_contexts().empty())
        return refuse_call(CUDA_ERROR_INVALID_CONTEXT, __func__, "this host thread has no current context");
    if (context != nullptr) *context = current_context();
    current_contexts().pop_back();
    go_on_below();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    if (context != nullptr) CUDA_ON_CPU_CHECK(check_context(__func__, context));
    if (!current_contexts().empty()) current_contexts().pop_back();
    if (context != nullptr) {
        make_current(context);
    } else {
        go_on_below();
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
    *context = current_context();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    *device = current_device();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned* flags) {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    const CUcontext context = current_context();
    *flags = context == nullptr ? primary_of(current_device()).flags : context->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext, unsigned* version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    return result_of(cudaDeviceSynchronize());
}

CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
    return result_of(cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value));
}

CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
    return result_of(cudaDeviceGetLimit(value, static_cast<cudaLimit>(limit)));
}

CUresult cuCtxSetCacheConfig(CUfunc_cache) {
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return result_of(cudaDeviceGetStreamPriorityRange(least, greatest));
}
