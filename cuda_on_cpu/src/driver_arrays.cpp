// The driver API: arrays and textures.
#include <algorithm>
#include <cstddef>

#include "arrays.hpp"
#include "cuda_runtime_api.h"
#include "driver.hpp"

namespace cuda_on_cpu {
namespace {

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

// Elements of 8 and 16 bits are read as floats unless the flags request integers.
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

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

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
