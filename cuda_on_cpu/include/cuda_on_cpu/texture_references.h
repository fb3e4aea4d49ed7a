// Texture references, `texture<float, 2> image;` at file scope, which CUDA 12 removed. A reference
// that is bound holds a texture object, so all fetches are those of texture_fetch.h. The translator
// replaces the word `texture` by the class below: programs may have a `texture` of their own.
#pragma once

#ifndef CUDA_ON_CPU_STRICT

#include <climits>
#include <cstddef>
#include <type_traits>

#include "channel_descriptor.h"
#include "cuda_on_cpu/channels.h"
#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/texture_fetch.h"
#include "cuda_runtime_api.h"
#include "texture_types.h"

struct textureReference {
    int normalized;
    cudaTextureFilterMode filterMode;
    cudaTextureAddressMode addressMode[3];
    cudaChannelFormatDesc channelDesc;
    int sRGB;
    unsigned maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias;
    float minMipmapLevelClamp;
    float maxMipmapLevelClamp;
    int disableTrilinearOptimization;

    // What a call binds; the reference itself is const for it.
    struct Binding {
        cudaTextureObject_t object;
        size_t offset;  // in bytes, from the aligned address to the one that was bound
        const char* name;
        cudaTextureReadMode read_mode;
        int shape;  // the second argument of texture<...>
    };
    mutable Binding cuda_on_cpu_binding;
};

cudaError_t cudaBindTexture(size_t* offset, const textureReference* reference, const void* pointer,
                            const cudaChannelFormatDesc* format, size_t bytes = UINT_MAX);
cudaError_t cudaBindTexture2D(size_t* offset, const textureReference* reference, const void* pointer,
                              const cudaChannelFormatDesc* format, size_t width, size_t height, size_t pitch);
cudaError_t cudaBindTextureToArray(const textureReference* reference, cudaArray_const_t array,
                                   const cudaChannelFormatDesc* format);
cudaError_t cudaBindTextureToMipmappedArray(const textureReference* reference,
                                            cudaMipmappedArray_const_t array,
                                            const cudaChannelFormatDesc* format);
cudaError_t cudaUnbindTexture(const textureReference* reference);
cudaError_t cudaGetTextureAlignmentOffset(size_t* offset, const textureReference* reference);
cudaError_t cudaGetTextureReference(const textureReference** reference, const void* symbol);

namespace cuda_on_cpu {

void note_texture_reference(const textureReference& reference);
[[noreturn]] void fail_unbound(const textureReference& reference, const char* function, Site site);

template <class T, int kShape = cudaTextureType1D, cudaTextureReadMode kMode = cudaReadModeElementType>
struct TextureReference : textureReference {
    TextureReference(int normalized_ = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
                     cudaTextureAddressMode mode = cudaAddressModeClamp)
        : TextureReference(normalized_, filter, mode, cudaCreateChannelDesc<T>()) {}
    TextureReference(int normalized_, cudaTextureFilterMode filter, cudaTextureAddressMode mode,
                     cudaChannelFormatDesc format)
        : textureReference{normalized_,
                           filter,
                           {mode, mode, mode},
                           format,
                           0,
                           0,
                           cudaFilterModePoint,
                           0,
                           0,
                           0,
                           0,
                           {0, 0, nullptr, kMode, kShape}} {
        note_texture_reference(*this);
    }
    TextureReference(const TextureReference&) = delete;
    TextureReference& operator=(const TextureReference&) = delete;
};

// Tells messages the name of a reference; the translator defines one behind each declaration.
struct NameOfTexture {
    NameOfTexture(const textureReference& reference, const char* name) {
        reference.cuda_on_cpu_binding.name = name;
    }
};

// The type of a fetch: that of the elements, or floats with as many channels.
template <class T, cudaTextureReadMode kMode, int kCount = Channels<T>::kCount>
struct FetchedType {
    using Type = T;
};
template <class T>
struct FetchedType<T, cudaReadModeNormalizedFloat, 1> {
    using Type = float;
};
template <class T>
struct FetchedType<T, cudaReadModeNormalizedFloat, 2> {
    using Type = float2;
};
template <class T>
struct FetchedType<T, cudaReadModeNormalizedFloat, 4> {
    using Type = float4;
};

inline cudaTextureObject_t bound_object(const textureReference& reference, const char* function, Site site) {
    const cudaTextureObject_t object = reference.cuda_on_cpu_binding.object;
    if (object == 0) fail_unbound(reference, function, site);
    return object;
}

}  // namespace cuda_on_cpu

// --- Binding ---

template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaBindTexture(size_t* offset, const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference,
                            const void* pointer, const cudaChannelFormatDesc& format,
                            size_t bytes = UINT_MAX) {
    return cudaBindTexture(offset, static_cast<const textureReference*>(&reference), pointer, &format, bytes);
}
template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaBindTexture(size_t* offset, const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference,
                            const void* pointer, size_t bytes = UINT_MAX) {
    return cudaBindTexture(offset, reference, pointer, reference.channelDesc, bytes);
}
template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaBindTexture2D(size_t* offset,
                              const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference,
                              const void* pointer, const cudaChannelFormatDesc& format, size_t width,
                              size_t height, size_t pitch) {
    return cudaBindTexture2D(offset, static_cast<const textureReference*>(&reference), pointer, &format,
                             width, height, pitch);
}
template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaBindTexture2D(size_t* offset,
                              const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference,
                              const void* pointer, size_t width, size_t height, size_t pitch) {
    return cudaBindTexture2D(offset, reference, pointer, reference.channelDesc, width, height, pitch);
}
template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaBindTextureToArray(const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference,
                                   cudaArray_const_t array, const cudaChannelFormatDesc& format) {
    return cudaBindTextureToArray(static_cast<const textureReference*>(&reference), array, &format);
}
template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaBindTextureToArray(const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference,
                                   cudaArray_const_t array) {
    return cudaBindTextureToArray(static_cast<const textureReference*>(&reference), array, nullptr);
}
template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaBindTextureToMipmappedArray(const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference,
                                            cudaMipmappedArray_const_t array,
                                            const cudaChannelFormatDesc& format) {
    return cudaBindTextureToMipmappedArray(static_cast<const textureReference*>(&reference), array, &format);
}
template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaBindTextureToMipmappedArray(const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference,
                                            cudaMipmappedArray_const_t array) {
    return cudaBindTextureToMipmappedArray(static_cast<const textureReference*>(&reference), array, nullptr);
}
template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaUnbindTexture(const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference) {
    return cudaUnbindTexture(static_cast<const textureReference*>(&reference));
}
template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaGetTextureAlignmentOffset(size_t* offset,
                                          const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference) {
    return cudaGetTextureAlignmentOffset(offset, static_cast<const textureReference*>(&reference));
}
// The symbol is the reference or its address.
template <class T, int kShape, cudaTextureReadMode kMode>
cudaError_t cudaGetTextureReference(const textureReference** reference,
                                    const cuda_on_cpu::TextureReference<T, kShape, kMode>& symbol) {
    return cudaGetTextureReference(reference, static_cast<const void*>(&symbol));
}

// --- Fetching: as texture_fetch.h, with the type that the reference has ---

#define CUDA_ON_CPU_REFERENCE_FETCH(name, kShape, parameters, ...)                 \
    template <class T, cudaTextureReadMode kMode>                                  \
    auto name(const cuda_on_cpu::TextureReference<T, kShape, kMode>& reference,    \
              CUDA_ON_CPU_REFERENCE_ARGUMENTS parameters,                          \
              cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {                \
        return name<typename cuda_on_cpu::FetchedType<T, kMode>::Type>(            \
            cuda_on_cpu::bound_object(reference, #name, site), __VA_ARGS__, site); \
    }
#define CUDA_ON_CPU_REFERENCE_ARGUMENTS(...) __VA_ARGS__
#define CUDA_ON_CPU_REFERENCE_FETCHES(name, kShape, Gradient, parameters, ...)                              \
    CUDA_ON_CPU_REFERENCE_FETCH(name, kShape, parameters, __VA_ARGS__)                                      \
    CUDA_ON_CPU_REFERENCE_FETCH(                                                                            \
        name##Lod, kShape, (CUDA_ON_CPU_REFERENCE_ARGUMENTS parameters, float level), __VA_ARGS__, level)   \
    CUDA_ON_CPU_REFERENCE_FETCH(                                                                            \
        name##Grad, kShape, (CUDA_ON_CPU_REFERENCE_ARGUMENTS parameters, Gradient step_x, Gradient step_y), \
        __VA_ARGS__, step_x, step_y)
CUDA_ON_CPU_REFERENCE_FETCH(tex1Dfetch, cudaTextureType1D, (int x), x)
CUDA_ON_CPU_REFERENCE_FETCHES(tex1D, cudaTextureType1D, float, (float x), x)
CUDA_ON_CPU_REFERENCE_FETCHES(tex2D, cudaTextureType2D, float2, (float x, float y), x, y)
CUDA_ON_CPU_REFERENCE_FETCHES(tex3D, cudaTextureType3D, float4, (float x, float y, float z), x, y, z)
CUDA_ON_CPU_REFERENCE_FETCHES(tex1DLayered, cudaTextureType1DLayered, float, (float x, int layer), x, layer)
CUDA_ON_CPU_REFERENCE_FETCHES(tex2DLayered, cudaTextureType2DLayered, float2, (float x, float y, int layer),
                              x, y, layer)
CUDA_ON_CPU_REFERENCE_FETCHES(texCubemap, cudaTextureTypeCubemap, float4, (float x, float y, float z), x, y,
                              z)
CUDA_ON_CPU_REFERENCE_FETCHES(texCubemapLayered, cudaTextureTypeCubemapLayered, float4,
                              (float x, float y, float z, int layer), x, y, z, layer)
#undef CUDA_ON_CPU_REFERENCE_FETCHES
#undef CUDA_ON_CPU_REFERENCE_FETCH
#undef CUDA_ON_CPU_REFERENCE_ARGUMENTS

namespace cuda_on_cpu {

// Four values of the type that a fetch gives.
template <class Channel>
struct FourOf;
template <>
struct FourOf<float> {
    using Type = float4;
};
template <>
struct FourOf<int> {
    using Type = int4;
};
template <>
struct FourOf<unsigned> {
    using Type = uint4;
};
template <>
struct FourOf<short> {
    using Type = short4;
};
template <>
struct FourOf<unsigned short> {
    using Type = ushort4;
};
template <>
struct FourOf<signed char> {
    using Type = char4;
};
template <>
struct FourOf<char> {
    using Type = char4;
};
template <>
struct FourOf<unsigned char> {
    using Type = uchar4;
};

}  // namespace cuda_on_cpu

template <class T, cudaTextureReadMode kMode>
auto tex2Dgather(const cuda_on_cpu::TextureReference<T, cudaTextureType2D, kMode>& reference, float x,
                 float y, int channel = 0, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    using Fetched = typename cuda_on_cpu::FetchedType<T, kMode>::Type;
    using Four = typename cuda_on_cpu::FourOf<typename cuda_on_cpu::Channels<Fetched>::Type>::Type;
    return tex2Dgather<Four>(cuda_on_cpu::bound_object(reference, "tex2Dgather", site), x, y, channel, site);
}

#endif
