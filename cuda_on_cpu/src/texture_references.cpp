// Texture references, which CUDA 12 removed: binding makes a texture object (textures.cpp) of the
// reference's attributes, which is what a driver does with them, too.
#include "cuda_on_cpu/texture_references.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "arrays.hpp"
#include "cuda_on_cpu/thread.h"
#include "errors.hpp"
#include "memory.hpp"
#include "work_queue.hpp"

namespace cuda_on_cpu {
namespace {

struct References {
    std::mutex mutex;
    std::set<const void*> all;
};
References& references() {
    static auto& only = *new References;
    return only;
}

std::string name_of(const textureReference& reference) {
    const char* const name = reference.cuda_on_cpu_binding.name;
    return name == nullptr ? "of this file" : "'" + std::string(name) + "'";
}

cudaError_t check_reference(const char* function, const textureReference* reference) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (reference == nullptr)
        return cuda_on_cpu::refuse(cudaErrorInvalidTexture, function, "the texture reference is null");
    return cudaSuccess;
}

// Kernels that are issued already read what was bound when they were launched.
void finish_launches() {
    if (work_is_deferred()) wait_for(all_open_tasks());
}

void release(const textureReference& reference) {
    auto& binding = reference.cuda_on_cpu_binding;
    if (binding.object == 0) return;
    finish_launches();
    cudaDestroyTextureObject(binding.object);
    binding.object = 0;
    binding.offset = 0;
}

cudaError_t bind(const char* function, const textureReference& reference, const cudaResourceDesc& resource) {
    cudaTextureDesc description{};
    for (int i = 0; i < 3; ++i)
        description.addressMode[i] = reference.addressMode[i];
    description.filterMode = reference.filterMode;
    description.readMode = reference.cuda_on_cpu_binding.read_mode;
    description.sRGB = reference.sRGB;
    description.normalizedCoords = reference.normalized;
    description.maxAnisotropy = reference.maxAnisotropy;
    description.mipmapFilterMode = reference.mipmapFilterMode;
    description.mipmapLevelBias = reference.mipmapLevelBias;
    description.minMipmapLevelClamp = reference.minMipmapLevelClamp;
    description.maxMipmapLevelClamp = reference.maxMipmapLevelClamp;
    cudaTextureObject_t object = 0;
    if (const cudaError_t error = cudaCreateTextureObject(&object, &resource, &description, nullptr);
        error != cudaSuccess) {
        std::fprintf(stderr, "cuda_on_cpu: %s: the texture reference %s is not bound\n", function,
                     name_of(reference).c_str());
        return error;
    }
    release(reference);
    reference.cuda_on_cpu_binding.object = object;
    return cudaSuccess;
}

// Textures begin at multiples of 512 bytes: the address before `pointer` that does.
cudaError_t align(const char* function, const textureReference& reference, const size_t* offset,
                  const void* pointer, std::size_t element, const char** aligned) {
    constexpr std::size_t kTextureAlignment = 512;
    *aligned = static_cast<const char*>(pointer);
    const auto allocation = find_allocation(pointer);
    if (!allocation) return cudaSuccess;
    const auto rest = static_cast<std::size_t>(*aligned - allocation->begin) % kTextureAlignment;
    if (rest != 0 && offset == nullptr)
        return cuda_on_cpu::refuse(
            cudaErrorInvalidValue, function,
            "%p is %zu bytes behind a multiple of the device's textureAlignment, %zu, and offset "
            "is null; expected a size_t that gets these bytes, which the fetches from %s have to "
            "add",
            pointer, rest, kTextureAlignment, name_of(reference).c_str());
    if (element != 0 && rest % element != 0)
        return cuda_on_cpu::refuse(
            cudaErrorInvalidValue, function,
            "%p is %zu bytes behind a multiple of the device's textureAlignment, %zu; expected a "
            "multiple of the element's %zu",
            pointer, rest, kTextureAlignment, element);
    *aligned -= rest;
    return cudaSuccess;
}

// The texture's own elements, and those that it is bound to.
void compare_formats(const char* function, const textureReference& reference,
                     const cudaChannelFormatDesc& format) {
    const cudaChannelFormatDesc& own = reference.channelDesc;
    if (own.x == format.x && own.y == format.y && own.z == format.z && own.w == format.w &&
        (own.f == format.f || format.f >= cudaChannelFormatKindUnsignedNormalized8X1))
        return;
    std::fprintf(stderr,
                 "cuda_on_cpu: %s: elements of %d, %d, %d, %d bits (kind %d) are bound to the texture "
                 "reference %s of elements of %d, %d, %d, %d bits (kind %d): fetches take the bits as they "
                 "are\n",
                 function, format.x, format.y, format.z, format.w, static_cast<int>(format.f),
                 name_of(reference).c_str(), own.x, own.y, own.z, own.w, static_cast<int>(own.f));
}

}  // namespace

void note_texture_reference(const textureReference& reference) {
    const std::scoped_lock lock(references().mutex);
    references().all.insert(&reference);
}

void fail_unbound(const textureReference& reference, const char* function, Site site) {
    device_failure(cudaErrorInvalidTexture,
                   (std::string(function) + ": the texture reference " + name_of(reference) +
                    " is not bound; expected cudaBindTexture, cudaBindTexture2D or cudaBindTextureToArray "
                    "before the launch")
                       .c_str(),
                   site);
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaBindTexture(size_t* offset, const textureReference* reference, const void* pointer,
                            const cudaChannelFormatDesc* format, size_t bytes) {
    if (const cudaError_t error = check_reference(__func__, reference); error != cudaSuccess) return error;
    if (format == nullptr) return refuse(cudaErrorInvalidValue, __func__, "desc is null");
    const char* aligned = nullptr;
    if (const cudaError_t error =
            align(__func__, *reference, offset, pointer, element_bytes(*format), &aligned);
        error != cudaSuccess) {
        return error;
    }
    const auto shift = static_cast<std::size_t>(static_cast<const char*>(pointer) - aligned);
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<char*>(aligned);
    resource.res.linear.desc = *format;
    resource.res.linear.sizeInBytes = bytes + shift;
    // Without a size: all of the allocation.
    if (const auto allocation = find_allocation(pointer); bytes == UINT_MAX && allocation)
        resource.res.linear.sizeInBytes =
            static_cast<std::size_t>(allocation->begin + allocation->size - aligned);
    compare_formats(__func__, *reference, *format);
    if (const cudaError_t error = bind(__func__, *reference, resource); error != cudaSuccess) return error;
    reference->cuda_on_cpu_binding.offset = shift;
    if (offset != nullptr) *offset = shift;
    return cudaSuccess;
}

cudaError_t cudaBindTexture2D(size_t* offset, const textureReference* reference, const void* pointer,
                              const cudaChannelFormatDesc* format, size_t width, size_t height,
                              size_t pitch) {
    if (const cudaError_t error = check_reference(__func__, reference); error != cudaSuccess) return error;
    if (format == nullptr) return refuse(cudaErrorInvalidValue, __func__, "desc is null");
    const std::size_t element = element_bytes(*format);
    const char* aligned = nullptr;
    if (const cudaError_t error = align(__func__, *reference, offset, pointer, element, &aligned);
        error != cudaSuccess) {
        return error;
    }
    const auto shift = static_cast<std::size_t>(static_cast<const char*>(pointer) - aligned);
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypePitch2D;
    auto& plane = resource.res.pitch2D;
    plane.devPtr = const_cast<char*>(aligned);
    plane.desc = *format;
    plane.width = width + (element == 0 ? 0 : shift / element);
    plane.height = height;
    plane.pitchInBytes = pitch;
    compare_formats(__func__, *reference, *format);
    if (const cudaError_t error = bind(__func__, *reference, resource); error != cudaSuccess) return error;
    reference->cuda_on_cpu_binding.offset = shift;
    if (offset != nullptr) *offset = shift;
    return cudaSuccess;
}

cudaError_t cudaBindTextureToArray(const textureReference* reference, cudaArray_const_t array,
                                   const cudaChannelFormatDesc* format) {
    if (const cudaError_t error = check_reference(__func__, reference); error != cudaSuccess) return error;
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = const_cast<cudaArray_t>(array);
    if (is_live_array(array)) compare_formats(__func__, *reference, format ? *format : array->format);
    return bind(__func__, *reference, resource);
}

cudaError_t cudaBindTextureToMipmappedArray(const textureReference* reference,
                                            cudaMipmappedArray_const_t array,
                                            const cudaChannelFormatDesc* format) {
    if (const cudaError_t error = check_reference(__func__, reference); error != cudaSuccess) return error;
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = const_cast<cudaMipmappedArray_t>(array);
    if (is_live_array(array))
        compare_formats(__func__, *reference, format ? *format : array->levels.front()->format);
    return bind(__func__, *reference, resource);
}

// Unbinding what is not bound succeeds, as in CUDA 11.
cudaError_t cudaUnbindTexture(const textureReference* reference) {
    if (const cudaError_t error = check_reference(__func__, reference); error != cudaSuccess) return error;
    release(*reference);
    return cudaSuccess;
}

cudaError_t cudaGetTextureAlignmentOffset(size_t* offset, const textureReference* reference) {
    if (const cudaError_t error = check_reference(__func__, reference); error != cudaSuccess) return error;
    if (offset == nullptr) return refuse(cudaErrorInvalidValue, __func__, "offset is null");
    if (reference->cuda_on_cpu_binding.object == 0)
        return refuse(cudaErrorInvalidTextureBinding, __func__, "the texture reference %s is not bound",
                      name_of(*reference).c_str());
    *offset = reference->cuda_on_cpu_binding.offset;
    return cudaSuccess;
}

cudaError_t cudaGetTextureReference(const textureReference** reference, const void* symbol) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (reference == nullptr) return refuse(cudaErrorInvalidValue, __func__, "texref is null");
    *reference = nullptr;
    const std::scoped_lock lock(references().mutex);
    if (references().all.count(symbol) == 0)
        return refuse(cudaErrorInvalidTexture, __func__,
                      "symbol %p is no texture reference of this program; expected its address, &name (the "
                      "name as a string was removed in CUDA 5)",
                      symbol);
    *reference = static_cast<const textureReference*>(symbol);
    return cudaSuccess;
}
