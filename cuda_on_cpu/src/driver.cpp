// The driver API, over the runtime API: both are the same device here. Errors of the two have the
// same numbers, but for those that only the runtime has.
#include "driver.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "copies.hpp"
#include "cuda_on_cpu/kernel_api.h"
#include "cuda_runtime_api.h"
#include "device.hpp"
#include "devices.hpp"
#include "errors.hpp"
#include "memory.hpp"
#include "modules.hpp"
#include "observer.hpp"
#include "stream.hpp"

struct CUctx_st {
    int device = 0;
    unsigned flags = 0;
    int references = 0;
};

struct CUlinkState_st {
    std::vector<std::string> images;
};

namespace cuda_on_cpu {
namespace {

std::atomic<bool> initialised = false;

// One for each device.
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
// Destructors of static objects may use the driver API. They run after those of this file, and
// after those of the main thread's own objects: what they need is never destroyed.
PrimaryContexts& primary_contexts() {
    static PrimaryContexts& only = *new PrimaryContexts;
    return only;
}
CUctx_st& primary_of(int device) {
    return primary_contexts().of[static_cast<std::size_t>(device)];
}
std::mutex contexts_mutex;
std::set<CUcontext>& contexts() {
    return primary_contexts().all;
}
// Of this host thread, the last one on top.
std::vector<CUcontext>& current_contexts() {
    static thread_local std::vector<CUcontext>& own = *new std::vector<CUcontext>;
    return own;
}

CUresult result_of(cudaError_t error) {
    if (error != cudaSuccess)
        static_cast<void>(cudaGetLastError());  // the runtime's last error is another one
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

}  // namespace

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

CUresult check_device(const char* function, CUdevice device) {
    if (!initialised && !runtime_in_use && live_allocations().empty())
        return refuse_call(CUDA_ERROR_NOT_INITIALIZED, function, "cuInit was not called before");
    if (device >= 0 && device < device_count()) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_DEVICE, function, "device %d; there %s %d, from 0", device,
                       device_count() == 1 ? "is" : "are", device_count());
}

namespace {

CUresult check_context(const char* function, CUcontext context) {
    const std::scoped_lock lock(contexts_mutex);
    if (contexts().contains(context)) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_CONTEXT, function, "context %p does not exist",
                       static_cast<void*>(context));
}

// A program that has called cuInit uses the driver API, and needs a context on each host thread.
// The runtime makes its own.
CUresult check_current(const char* function) {
    if (!initialised || !current_contexts().empty() || primary_of(current_device()).references > 0)
        return CUDA_SUCCESS;
    // The runtime, too, may have made the primary context current. It has if it gave out memory.
    if (!live_allocations().empty()) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_CONTEXT, function,
                       "this host thread has no current context; expected cuCtxCreate, or "
                       "cuDevicePrimaryCtxRetain and cuCtxSetCurrent, before");
}

void* pointer_of(CUdeviceptr pointer) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
}

CUdeviceptr number_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

// cudaSetDevice(), too, chooses a context: the primary one of its device.
void follow_runtime() {
    if (!current_contexts().empty() && current_contexts().back()->device != current_device())
        current_contexts().back() = &primary_of(current_device());
}

void make_current(CUcontext context) {
    follow_runtime();
    current_contexts().push_back(context);
    device_of_os_thread = context->device;
}

// The context under one that was taken away.
void go_on_below() {
    if (!current_contexts().empty()) device_of_os_thread = current_contexts().back()->device;
}

// Null: none.
CUcontext current_context() {
    follow_runtime();
    if (!current_contexts().empty()) return current_contexts().back();
    const bool of_runtime = !live_allocations().empty() || !initialised;
    return of_runtime ? &primary_of(current_device()) : nullptr;
}

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

template <class Value>
CUresult set_values(const char* function, CUdeviceptr pointer, Value value, std::size_t count,
                    CUstream stream) {
    if (count == 0) return CUDA_SUCCESS;
    if (pointer % sizeof value != 0)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "pointer 0x%llx; expected a multiple of %zu",
                           pointer, sizeof value);
    const std::size_t bytes = count * sizeof value;
    if (const cudaError_t error = check_copied(function, "pointer", pointer_of(pointer), true, bytes);
        error != cudaSuccess) {
        return result_of(error);
    }
    return result_of(submit(stream, function, [=] {
        auto* to = static_cast<Value*>(pointer_of(pointer));
        std::fill(to, to + count, value);
        if (memory_observer != nullptr) memory_observer->memory_written(to, bytes);
        return cudaSuccess;
    }));
}

// One side of a copy in three dimensions.
struct CopySide {
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    CUarray array;
    std::size_t pitch, height, x, y, z;
};

CUresult place(const char* function, const char* name, const CopySide& side, std::size_t element,
               cudaArray_t* array, cudaPitchedPtr* pointer, cudaPos* at) {
    *at = {side.x, side.y, side.z};
    switch (side.type) {
        case CU_MEMORYTYPE_HOST:
            *pointer = {const_cast<void*>(side.host), side.pitch, side.pitch, side.height};
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_DEVICE:
        case CU_MEMORYTYPE_UNIFIED:
            *pointer = {pointer_of(side.device), side.pitch, side.pitch, side.height};
            return CUDA_SUCCESS;
        case CU_MEMORYTYPE_ARRAY:
            *array = side.array;
            at->x /= element;
            return CUDA_SUCCESS;
    }
    return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "the memory type of the %s is %d", name,
                       static_cast<int>(side.type));
}

CUresult copy_3d(const char* function, const CUDA_MEMCPY3D* c, CUstream stream, bool returns_early) {
    if (c == nullptr) return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "the copy is null");
    std::size_t element = 1;
    for (const auto& [type, array] :
         {std::pair(c->srcMemoryType, c->srcArray), std::pair(c->dstMemoryType, c->dstArray)}) {
        if (type == CU_MEMORYTYPE_ARRAY && is_live_array(array)) element = array->element_bytes;
    }
    cudaMemcpy3DParms p{};
    const CopySide from{c->srcMemoryType, c->srcHost,     c->srcDevice, c->srcArray, c->srcPitch,
                        c->srcHeight,     c->srcXInBytes, c->srcY,      c->srcZ};
    const CopySide to{c->dstMemoryType, c->dstHost,     c->dstDevice, c->dstArray, c->dstPitch,
                      c->dstHeight,     c->dstXInBytes, c->dstY,      c->dstZ};
    if (const CUresult error = place(function, "source", from, element, &p.srcArray, &p.srcPtr, &p.srcPos);
        error != CUDA_SUCCESS) {
        return error;
    }
    if (const CUresult error = place(function, "destination", to, element, &p.dstArray, &p.dstPtr, &p.dstPos);
        error != CUDA_SUCCESS) {
        return error;
    }
    p.extent = {c->WidthInBytes / element, c->Height, c->Depth};
    p.kind = cudaMemcpyDefault;
    return result_of(returns_early ? cudaMemcpy3DAsync(&p, stream) : cudaMemcpy3D(&p));
}

CUresult copy_2d(const char* function, const CUDA_MEMCPY2D* c, CUstream stream, bool returns_early) {
    if (c == nullptr) return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "the copy is null");
    CUDA_MEMCPY3D all{};
    all.srcXInBytes = c->srcXInBytes;
    all.srcY = c->srcY;
    all.srcMemoryType = c->srcMemoryType;
    all.srcHost = c->srcHost;
    all.srcDevice = c->srcDevice;
    all.srcArray = c->srcArray;
    all.srcPitch = c->srcPitch != 0 ? c->srcPitch : c->WidthInBytes;
    all.dstXInBytes = c->dstXInBytes;
    all.dstY = c->dstY;
    all.dstMemoryType = c->dstMemoryType;
    all.dstHost = c->dstHost;
    all.dstDevice = c->dstDevice;
    all.dstArray = c->dstArray;
    all.dstPitch = c->dstPitch != 0 ? c->dstPitch : c->WidthInBytes;
    all.WidthInBytes = c->WidthInBytes;
    all.Height = c->Height;
    all.Depth = 1;
    return copy_3d(function, &all, stream, returns_early);
}

// --- Arrays and textures ---

bool channel_of(CUarray_format format, unsigned channels, cudaChannelFormatDesc* d) {
    int bits = 0;
    cudaChannelFormatKind kind = cudaChannelFormatKindUnsigned;
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            bits = 8;
            break;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            bits = 16;
            break;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
            bits = 32;
            break;
        default:
            return false;
    }
    if (format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT) kind = cudaChannelFormatKindFloat;
    if (format >= CU_AD_FORMAT_SIGNED_INT8 && format <= CU_AD_FORMAT_SIGNED_INT32)
        kind = cudaChannelFormatKindSigned;
    *d = {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
    return true;
}

CUarray_format format_of(const cudaChannelFormatDesc& d) {
    if (d.f == cudaChannelFormatKindFloat) return d.x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
    const int size = d.x == 8 ? 0 : d.x == 16 ? 1 : 2;
    return static_cast<CUarray_format>(
        (d.f == cudaChannelFormatKindSigned ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8) + size);
}

CUresult create_array(const char* function, CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR& d) {
    cudaChannelFormatDesc format{};
    if (!channel_of(d.Format, d.NumChannels, &format))
        return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "Format is %d", static_cast<int>(d.Format));
    return result_of(cudaMalloc3DArray(array, &format, {d.Width, d.Height, d.Depth}, d.Flags));
}

CUresult resource_of(const char* function, const CUDA_RESOURCE_DESC* from, cudaResourceDesc* to) {
    if (from == nullptr) return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "the resource is null");
    to->resType = static_cast<cudaResourceType>(from->resType);
    bool known = true;
    switch (from->resType) {
        case CU_RESOURCE_TYPE_ARRAY:
            to->res.array.array = from->res.array.hArray;
            break;
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            to->res.mipmap.mipmap = from->res.mipmap.hMipmappedArray;
            break;
        case CU_RESOURCE_TYPE_LINEAR:
            to->res.linear.devPtr = pointer_of(from->res.linear.devPtr);
            to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
            known = channel_of(from->res.linear.format, from->res.linear.numChannels, &to->res.linear.desc);
            break;
        case CU_RESOURCE_TYPE_PITCH2D:
            to->res.pitch2D.devPtr = pointer_of(from->res.pitch2D.devPtr);
            to->res.pitch2D.width = from->res.pitch2D.width;
            to->res.pitch2D.height = from->res.pitch2D.height;
            to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
            known =
                channel_of(from->res.pitch2D.format, from->res.pitch2D.numChannels, &to->res.pitch2D.desc);
            break;
    }
    if (known) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "the format of the resource is none that exists");
}

// Unless they are said to be read as integers, those of 8 and 16 bits become floats.
bool read_as_floats(const cudaResourceDesc& resource, unsigned flags) {
    if ((flags & CU_TRSF_READ_AS_INTEGER) != 0) return false;
    cudaChannelFormatDesc d{};
    if (resource.resType == cudaResourceTypeArray && is_live_array(resource.res.array.array)) {
        d = resource.res.array.array->format;
    } else if (resource.resType == cudaResourceTypeMipmappedArray &&
               is_live_array(resource.res.mipmap.mipmap)) {
        d = resource.res.mipmap.mipmap->levels.front()->format;
    } else if (resource.resType == cudaResourceTypeLinear) {
        d = resource.res.linear.desc;
    } else if (resource.resType == cudaResourceTypePitch2D) {
        d = resource.res.pitch2D.desc;
    }
    return d.x < 32 && d.f != cudaChannelFormatKindFloat;
}

// --- Modules and kernels ---

CUresult check_function(const char* name, CUfunction function) {
    if (function != nullptr) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_HANDLE, name, "the function is null");
}

CUresult find_function(const char* caller, CUfunction* function, CUmodule module, const char* name) {
    if (function == nullptr || module == nullptr || name == nullptr)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, caller,
                           "the function to set, the module or the name is null");
    auto& known = module->functions[name];
    if (known == nullptr) {
        const auto found = module->kernels.find(name);
        if (found == module->kernels.end()) {
            std::string all;
            for (const auto& [other, symbol] : module->kernels)
                all += (all.empty() ? "" : ", ") + other;
            return refuse_call(CUDA_ERROR_NOT_FOUND, caller, "the module has no kernel '%s'; it has: %s",
                               name, all.empty() ? "none" : all.c_str());
        }
        Kernel* const kernel = kernel_at(found->second.address);
        if (kernel == nullptr) return refuse_call(CUDA_ERROR_NOT_FOUND, caller, "'%s' is no kernel", name);
        known = std::make_unique<CUfunc_st>(CUfunc_st{name, found->second.address, module, kernel});
    }
    *function = known.get();
    return CUDA_SUCCESS;
}

CUresult read_file(const char* function, const char* name, std::string* bytes) {
    if (name == nullptr) return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "the file's name is null");
    std::ifstream file(name, std::ios::binary);
    if (!file) return refuse_call(CUDA_ERROR_FILE_NOT_FOUND, function, "file '%s' cannot be read", name);
    bytes->assign(std::istreambuf_iterator<char>(file), {});
    bytes->append(64, '\0');  // an image is looked at without its size
    return CUDA_SUCCESS;
}

// The arguments by their addresses in the buffer of `extra`.
CUresult unpack(const char* function, const Kernel& kernel, void** extra, std::vector<void*>* arguments) {
    char* buffer = nullptr;
    std::size_t bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = static_cast<char*>(extra[1]);
        } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            bytes = *static_cast<const std::size_t*>(extra[1]);
        } else {
            return refuse_call(CUDA_ERROR_INVALID_VALUE, function,
                               "extra has %p; expected CU_LAUNCH_PARAM_...", *extra);
        }
    }
    std::size_t at = 0;
    for (const ParameterSize* p = kernel.parameters; p != nullptr && p->size != 0; ++p) {
        at = (at + p->alignment - 1) / p->alignment * p->alignment;
        if (buffer == nullptr || at + p->size > bytes)
            return refuse_call(CUDA_ERROR_INVALID_VALUE, function,
                               "the buffer of arguments has %zu bytes; expected at least %zu", bytes,
                               at + p->size);
        arguments->push_back(buffer + at);
        at += p->size;
    }
    return CUDA_SUCCESS;
}

CUresult launch_function(const char* caller, CUfunction function, void** arguments, void** extra,
                         const LaunchConfiguration& configuration) {
    if (const CUresult error = check_function(caller, function); error != CUDA_SUCCESS) return error;
    std::vector<void*> unpacked;
    if (arguments == nullptr && extra != nullptr) {
        if (const CUresult error = unpack(caller, *function->kernel, extra, &unpacked); error != CUDA_SUCCESS)
            return error;
    }
    if (arguments == nullptr && extra == nullptr && function->kernel->parameters != nullptr &&
        function->kernel->parameters.load()->size != 0)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, caller,
                           "kernel %s has parameters, and no arguments are given", function->name.c_str());
    return result_of(
        launch_untyped(function->address, arguments != nullptr ? arguments : unpacked.data(), configuration));
}

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

#define CUDA_ON_CPU_CHECK(call) \
    if (const CUresult error_ = call; error_ != CUDA_SUCCESS) return error_

CUresult cuInit(unsigned flags) {
    if (flags != 0) return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "flags are %u; expected 0", flags);
    initialised = true;
    return CUDA_SUCCESS;
}

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

// The program's own functions: nvcc links it so that they are found by name.
CUresult cuGetProcAddress(const char* symbol, void** function, int, cuuint64_t, int* status) {
    if (symbol == nullptr || function == nullptr)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "the symbol or the function to set is null");
    *function = dlsym(RTLD_DEFAULT, symbol);
    if (*function == nullptr && std::strcmp(symbol, "cuCtxCreate") == 0)
        *function = reinterpret_cast<void*>(cuCtxCreate_v4);
    if (status != nullptr) *status = *function == nullptr ? 1 : 0;
    return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
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
    // What only the driver asks for.
    switch (static_cast<int>(attribute)) {
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED:  // noted, and told again
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

// --- Memory --------------------------------------------------------------------------------------

namespace {

// A size of 0 is an error of the driver's functions, but not of the runtime's.
CUresult check_allocation(const char* function, const CUdeviceptr* pointer, std::size_t bytes) {
    CUDA_ON_CPU_CHECK(check_current(function));
    if (pointer != nullptr && bytes != 0) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "%s",
                       pointer == nullptr ? "the pointer to set is null" : "0 bytes; expected 1 or more");
}

CUresult set_pointer(CUdeviceptr* pointer, cudaError_t error, const void* allocated) {
    if (error == cudaSuccess) *pointer = number_of(allocated);
    return result_of(error);
}

}  // namespace

CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    return result_of(cudaMemGetInfo(free, total));
}

CUresult cuMemAlloc(CUdeviceptr* pointer, std::size_t bytes) {
    CUDA_ON_CPU_CHECK(check_allocation(__func__, pointer, bytes));
    void* allocated = nullptr;
    const cudaError_t error = ::cudaMalloc(&allocated, bytes);
    return set_pointer(pointer, error, allocated);
}

CUresult cuMemAllocPitch(CUdeviceptr* pointer, std::size_t* pitch, std::size_t width, std::size_t height,
                         unsigned) {
    CUDA_ON_CPU_CHECK(check_allocation(__func__, pointer, width * height));
    void* allocated = nullptr;
    const cudaError_t error = ::cudaMallocPitch(&allocated, pitch, width, height);
    return set_pointer(pointer, error, allocated);
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned flags) {
    CUDA_ON_CPU_CHECK(check_allocation(__func__, pointer, bytes));
    void* allocated = nullptr;
    const cudaError_t error = ::cudaMallocManaged(&allocated, bytes, flags);
    return set_pointer(pointer, error, allocated);
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
    CUDA_ON_CPU_CHECK(check_allocation(__func__, pointer, bytes));
    void* allocated = nullptr;
    const cudaError_t error = ::cudaMallocAsync(&allocated, bytes, stream);
    return set_pointer(pointer, error, allocated);
}

CUresult cuMemFree(CUdeviceptr pointer) {
    return result_of(cudaFree(pointer_of(pointer)));
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
    return result_of(cudaFreeAsync(pointer_of(pointer), stream));
}

CUresult cuMemAllocHost(void** pointer, std::size_t bytes) {
    return result_of(::cudaMallocHost(pointer, bytes, cudaHostAllocDefault));
}

CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
    return result_of(::cudaHostAlloc(pointer, bytes, flags));
}

CUresult cuMemFreeHost(void* pointer) {
    return result_of(cudaFreeHost(pointer));
}

CUresult cuMemHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
    return result_of(cudaHostRegister(pointer, bytes, flags));
}

CUresult cuMemHostUnregister(void* pointer) {
    return result_of(cudaHostUnregister(pointer));
}

CUresult cuMemHostGetFlags(unsigned* flags, void* pointer) {
    return result_of(cudaHostGetFlags(flags, pointer));
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* device_pointer, void* pointer, unsigned flags) {
    void* found = nullptr;
    const cudaError_t error = ::cudaHostGetDevicePointer(&found, pointer, flags);
    return set_pointer(device_pointer, error, found);
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr pointer) {
    const auto allocation = find_allocation(pointer_of(pointer));
    if (!allocation || allocation->freed)
        return refuse_call(CUDA_ERROR_NOT_FOUND, __func__, "pointer 0x%llx is not of an allocation", pointer);
    if (base != nullptr) *base = number_of(allocation->begin);
    if (bytes != nullptr) *bytes = allocation->size;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
    const auto allocation = find_allocation(pointer_of(pointer));
    if (data == nullptr || !allocation || allocation->freed)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__,
                           "data is null, or pointer 0x%llx is not of an allocation", pointer);
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            *static_cast<CUcontext*>(data) =
                allocation->device == current_device() ? current_context() : &primary_of(allocation->device);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *static_cast<unsigned*>(data) =
                allocation->type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            *static_cast<CUdeviceptr*>(data) = pointer;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (allocation->type == cudaMemoryTypeDevice) return CUDA_ERROR_INVALID_VALUE;
            *static_cast<void**>(data) = pointer_of(pointer);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *static_cast<unsigned*>(data) = allocation->type == cudaMemoryTypeManaged;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *static_cast<int*>(data) = allocation->device;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *static_cast<CUdeviceptr*>(data) = number_of(allocation->begin);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *static_cast<std::size_t*>(data) = allocation->size;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MAPPED:
            *static_cast<unsigned*>(data) = 1;
            return CUDA_SUCCESS;
        default:
            return refuse_call(CUDA_ERROR_NOT_SUPPORTED, __func__, "attribute is %d",
                               static_cast<int>(attribute));
    }
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return result_of(cudaMemcpy(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDefault));
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      std::size_t bytes) {
    for (const CUcontext context : {to_context, from_context})
        CUDA_ON_CPU_CHECK(check_context(__func__, context));
    return result_of(
        cudaMemcpyPeer(pointer_of(to), to_context->device, pointer_of(from), from_context->device, bytes));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t bytes, CUstream stream) {
    for (const CUcontext context : {to_context, from_context})
        CUDA_ON_CPU_CHECK(check_context(__func__, context));
    return result_of(cudaMemcpyPeerAsync(pointer_of(to), to_context->device, pointer_of(from),
                                         from_context->device, bytes, stream));
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return result_of(cudaMemcpyAsync(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDefault, stream));
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
    return result_of(cudaMemcpy(pointer_of(to), from, bytes, cudaMemcpyHostToDevice));
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
    return result_of(cudaMemcpy(to, pointer_of(from), bytes, cudaMemcpyDeviceToHost));
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return result_of(cudaMemcpy(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDeviceToDevice));
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
    return result_of(cudaMemcpyAsync(pointer_of(to), from, bytes, cudaMemcpyHostToDevice, stream));
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return result_of(cudaMemcpyAsync(to, pointer_of(from), bytes, cudaMemcpyDeviceToHost, stream));
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return result_of(
        cudaMemcpyAsync(pointer_of(to), pointer_of(from), bytes, cudaMemcpyDeviceToDevice, stream));
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D* copy) {
    return copy_2d(__func__, copy, nullptr, false);
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* copy) {
    return copy_2d(__func__, copy, nullptr, false);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
    return copy_2d(__func__, copy, stream, true);
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D* copy) {
    return copy_3d(__func__, copy, nullptr, false);
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) {
    return copy_3d(__func__, copy, stream, true);
}

CUresult cuMemsetD8(CUdeviceptr pointer, unsigned char value, std::size_t count) {
    return set_values(__func__, pointer, value, count, nullptr);
}

CUresult cuMemsetD16(CUdeviceptr pointer, unsigned short value, std::size_t count) {
    return set_values(__func__, pointer, value, count, nullptr);
}

CUresult cuMemsetD32(CUdeviceptr pointer, unsigned value, std::size_t count) {
    return set_values(__func__, pointer, value, count, nullptr);
}

CUresult cuMemsetD8Async(CUdeviceptr pointer, unsigned char value, std::size_t count, CUstream stream) {
    return set_values(__func__, pointer, value, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr pointer, unsigned short value, std::size_t count, CUstream stream) {
    return set_values(__func__, pointer, value, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned value, std::size_t count, CUstream stream) {
    return set_values(__func__, pointer, value, count, stream);
}

CUresult cuMemsetD2D8(CUdeviceptr pointer, std::size_t pitch, unsigned char value, std::size_t width,
                      std::size_t height) {
    return result_of(cudaMemset2D(pointer_of(pointer), pitch, value, width, height));
}

// --- Arrays and textures -------------------------------------------------------------------------

CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* d) {
    if (d == nullptr) return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "the description is null");
    return create_array(__func__, array, {d->Width, d->Height, 0, d->Format, d->NumChannels, 0});
}

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* d) {
    if (d == nullptr) return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "the description is null");
    return create_array(__func__, array, *d);
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* d, CUarray array) {
    cudaChannelFormatDesc format{};
    cudaExtent extent{};
    CUDA_ON_CPU_CHECK(result_of(cudaArrayGetInfo(&format, &extent, nullptr, array)));
    const unsigned channels = 1U + (format.y != 0) + (format.z != 0) + (format.w != 0);
    *d = {extent.width, extent.height, format_of(format), channels};
    return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array) {
    return result_of(cudaFreeArray(array));
}

CUresult cuTexObjectCreate(CUtexObject* texture, const CUDA_RESOURCE_DESC* from, const CUDA_TEXTURE_DESC* d,
                           const CUDA_RESOURCE_VIEW_DESC* view) {
    cudaResourceDesc resource{};
    CUDA_ON_CPU_CHECK(resource_of(__func__, from, &resource));
    if (d == nullptr || view != nullptr)
        return refuse_call(d == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED, __func__, "%s",
                           d == nullptr ? "the description is null" : "a resource view");
    cudaTextureDesc description{};
    for (std::size_t i = 0; i < 3; ++i)
        description.addressMode[i] = static_cast<cudaTextureAddressMode>(d->addressMode[i]);
    description.filterMode = static_cast<cudaTextureFilterMode>(d->filterMode);
    description.mipmapFilterMode = static_cast<cudaTextureFilterMode>(d->mipmapFilterMode);
    description.normalizedCoords = (d->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    description.sRGB = (d->flags & CU_TRSF_SRGB) != 0;
    description.readMode =
        read_as_floats(resource, d->flags) ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    std::copy(d->borderColor, d->borderColor + 4, description.borderColor);
    description.maxAnisotropy = d->maxAnisotropy;
    description.mipmapLevelBias = d->mipmapLevelBias;
    description.minMipmapLevelClamp = d->minMipmapLevelClamp;
    description.maxMipmapLevelClamp = d->maxMipmapLevelClamp;
    return result_of(cudaCreateTextureObject(texture, &resource, &description, nullptr));
}

CUresult cuTexObjectDestroy(CUtexObject texture) {
    return result_of(cudaDestroyTextureObject(texture));
}

CUresult cuSurfObjectCreate(CUsurfObject* surface, const CUDA_RESOURCE_DESC* from) {
    cudaResourceDesc resource{};
    CUDA_ON_CPU_CHECK(resource_of(__func__, from, &resource));
    return result_of(cudaCreateSurfaceObject(surface, &resource));
}

CUresult cuSurfObjectDestroy(CUsurfObject surface) {
    return result_of(cudaDestroySurfaceObject(surface));
}

// --- Modules -------------------------------------------------------------------------------------

CUresult cuModuleLoad(CUmodule* module, const char* name) {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    std::string bytes;
    CUDA_ON_CPU_CHECK(read_file(__func__, name, &bytes));
    return load_module(__func__, module, image_at(bytes.data()));
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    return load_module(__func__, module, image_at(image));
}

// The logs of a compiler that has nothing to do are empty.
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                            void** values) {
    for (unsigned i = 0; i < count; ++i) {
        const bool is_log = options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER;
        if (is_log && values[i] != nullptr) *static_cast<char*>(values[i]) = '\0';
    }
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
    return cuModuleLoadData(module, image);
}

// The code stays in memory: kernels that were launched may still be named in a message.
CUresult cuModuleUnload(CUmodule module) {
    if (module == nullptr) return refuse_call(CUDA_ERROR_INVALID_HANDLE, __func__, "the module is null");
    const CUresult result = result_of(cudaDeviceSynchronize());
    delete module;
    return result;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    return find_function(__func__, function, module, name);
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
    *count = static_cast<unsigned>(module->kernels.size());
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr* pointer, std::size_t* bytes, CUmodule module, const char* name) {
    if (module == nullptr || name == nullptr)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "the module or the name is null");
    const auto found = module->variables.find(name);
    if (found == module->variables.end())
        return refuse_call(CUDA_ERROR_NOT_FOUND, __func__, "the module has no variable '%s'", name);
    if (pointer != nullptr) *pointer = number_of(found->second.address);
    if (bytes != nullptr) *bytes = found->second.size;
    return CUDA_SUCCESS;
}

CUresult cuLinkCreate(unsigned, CUjit_option*, void**, CUlinkState* state) {
    *state = new CUlinkState_st;
    return CUDA_SUCCESS;
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType, void* data, std::size_t, const char*, unsigned,
                       CUjit_option*, void**) {
    const Image image = image_at(data);
    if (image.error != CUDA_SUCCESS) return refuse_call(image.error, __func__, "%s", image.why.c_str());
    state->images.push_back(image.bytes);
    return CUDA_SUCCESS;
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* file, unsigned count,
                       CUjit_option* options, void** values) {
    std::string bytes;
    CUDA_ON_CPU_CHECK(read_file(__func__, file, &bytes));
    return cuLinkAddData(state, type, bytes.data(), bytes.size(), file, count, options, values);
}

CUresult cuLinkComplete(CUlinkState state, void** image, std::size_t* bytes) {
    if (state->images.size() != 1)
        return refuse_call(CUDA_ERROR_NOT_SUPPORTED, __func__,
                           "%zu images are to become one; expected one image: give all sources to one "
                           "nvcc command",
                           state->images.size());
    *image = state->images.front().data();
    if (bytes != nullptr) *bytes = state->images.front().size();
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
    delete state;
    return CUDA_SUCCESS;
}

// A library is a module, and a kernel a function, that belong to no context. Contexts share
// everything here.
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned, void*,
                           void**, unsigned) {
    return load_module(__func__, reinterpret_cast<CUmodule*>(library), image_at(image));
}

CUresult cuLibraryUnload(CUlibrary library) {
    return cuModuleUnload(reinterpret_cast<CUmodule>(library));
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    return find_function(__func__, reinterpret_cast<CUfunction*>(kernel), reinterpret_cast<CUmodule>(library),
                         name);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    *function = reinterpret_cast<CUfunction>(kernel);
    return check_function(__func__, *function);
}

// --- Kernels -------------------------------------------------------------------------------------

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    cudaFuncAttributes attributes;
    CUDA_ON_CPU_CHECK(result_of(get_attributes(&attributes, function->kernel)));
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = attributes.maxThreadsPerBlock;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            *value = static_cast<int>(attributes.sharedSizeBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
            *value = static_cast<int>(attributes.constSizeBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            *value = static_cast<int>(attributes.localSizeBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            *value = attributes.numRegs;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
            *value = attributes.ptxVersion;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            *value = attributes.binaryVersion;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = attributes.maxDynamicSharedSizeBytes;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            *value = attributes.preferredShmemCarveout;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
            *value = function->kernel->non_portable_cluster;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
            *value = 0;
            return CUDA_SUCCESS;
        default:
            return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "attribute is %d",
                               static_cast<int>(attribute));
    }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    return result_of(set_attribute(function->kernel, static_cast<cudaFuncAttribute>(attribute), value));
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
    return check_function(__func__, function);
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    *name = function->name.c_str();
    return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    *module = function->module;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** arguments, void** extra) {
    return launch_function(__func__, function, arguments, extra,
                           {.grid = dim3(grid_x, grid_y, grid_z),
                            .block = dim3(block_x, block_y, block_z),
                            .dynamic_shared = shared_bytes,
                            .stream = stream});
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, CUstream stream, void** arguments) {
    return launch_function(__func__, function, arguments, nullptr,
                           {.grid = dim3(grid_x, grid_y, grid_z),
                            .block = dim3(block_x, block_y, block_z),
                            .dynamic_shared = shared_bytes,
                            .stream = stream,
                            .cooperative = true});
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

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                     std::size_t dynamic_shared) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    return result_of(max_active_blocks(blocks, function->kernel, block_size, dynamic_shared));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int block_size, std::size_t dynamic_shared,
                                                              unsigned) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_shared);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block_size, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block_size, std::size_t dynamic_shared,
                                          int limit) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    if (shared_of_block_size != nullptr) dynamic_shared = shared_of_block_size(limit > 0 ? limit : 1024);
    return result_of(max_potential_block_size(min_grid, block_size, function->kernel, dynamic_shared, limit));
}

// --- Streams and events --------------------------------------------------------------------------

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
