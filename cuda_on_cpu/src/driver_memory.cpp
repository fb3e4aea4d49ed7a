// The driver API: memory and copies.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "arrays.hpp"
#include "copies.hpp"
#include "cuda_runtime_api.h"
#include "current_device.hpp"
#include "driver.hpp"
#include "memory.hpp"
#include "observer.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {
namespace {

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
        auto* to = reinterpret_cast<Value*>(pointer_of(pointer));
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

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

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
