// tex2D<T>(texture, x, y) and related functions, surf2Dread<T>(surface, x, y) and related
// functions. Texture coordinates count elements, from 0 to the width, or run from 0 to 1 if they
// are normalised. The x coordinate of a surface is in bytes. The rules are those of the CUDA C++
// Programming Guide, appendix "Texture Fetching".
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda_on_cpu/channels.h"
#include "cuda_on_cpu/language.h"
#include "surface_types.h"
#include "texture_types.h"
#include "vector_types.h"

namespace cuda_on_cpu {

enum class TextureShape { linear, one, two, three, one_layered, two_layered, cubemap, cubemap_layered };

// One fetch. The level of a mipmap is 0, or given, or computed from the gradients: the change of
// the coordinates from one pixel to the next in each direction.
struct TextureFetch {
    const char* function;
    TextureShape shape;
    float x = 0, y = 0, z = 0;
    int layer = 0;
    enum { level_0, level_given, level_from_gradient } level_from = level_0;
    float level = 0;
    float4 dx{}, dy{};
    int gathered_channel = -1;
};

// Four channels: floats, or sign-extended 32-bit integers. Channels that an element lacks are 0;
// the fourth is 1.
struct Texel {
    std::uint32_t bits[4];
};
Texel fetch_texel(cudaTextureObject_t texture, const TextureFetch& fetch, bool as_float, Site site);
Texel fetch_element(cudaTextureObject_t texture, int index, bool as_float, Site site);

template <class T>
T texel_as(const Texel& texel) {
    using Channel = typename Channels<T>::Type;
    constexpr int kCount = Channels<T>::kCount;
    static_assert(sizeof(Channel) <= 4 && kCount != 3,
                  "a texture's elements have 1, 2 or 4 channels of 8, 16 or 32 bits");
    Channel channels[kCount];
    for (int i = 0; i < kCount; ++i) {
        if constexpr (std::is_floating_point_v<Channel>)
            channels[i] = std::bit_cast<float>(texel.bits[i]);
        else
            channels[i] = static_cast<Channel>(texel.bits[i]);
    }
    T value;
    std::memcpy(&value, channels, sizeof value);
    return value;
}

template <class T>
T fetch_as(cudaTextureObject_t texture, const TextureFetch& fetch, Site site) {
    return texel_as<T>(
        fetch_texel(texture, fetch, std::is_floating_point_v<typename Channels<T>::Type>, site));
}

enum class SurfaceShape { one, two, three, one_layered, two_layered, cubemap };

struct SurfaceAccess {
    const char* function;
    SurfaceShape shape;
    int x, y, z;  // z: the slice, the layer or the face
    unsigned bytes;
    cudaSurfaceBoundaryMode mode;
};
void read_surface(cudaSurfaceObject_t surface, const SurfaceAccess& access, void* value, Site site);
void write_surface(cudaSurfaceObject_t surface, const SurfaceAccess& access, const void* value, Site site);

inline float4 gradient(float x) {
    return {x, 0, 0, 0};
}
inline float4 gradient(float2 v) {
    return {v.x, v.y, 0, 0};
}
inline float4 gradient(float4 v) {
    return v;
}

}  // namespace cuda_on_cpu

// Each function has two forms: value = tex2D<T>(texture, x, y), and tex2D(&value, texture, x, y).
// The arguments after the parameters describe the fetch.
#define CUDA_ON_CPU_TEXTURE_PARAMETERS(...) __VA_ARGS__
#define CUDA_ON_CPU_FETCH(name, parameters, ...)                                                \
    template <class T>                                                                          \
    T name(cudaTextureObject_t texture, CUDA_ON_CPU_TEXTURE_PARAMETERS parameters,              \
           cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {                                \
        using enum cuda_on_cpu::TextureShape;                                                   \
        return cuda_on_cpu::fetch_as<T>(texture, {.function = #name, __VA_ARGS__}, site);       \
    }                                                                                           \
    template <class T>                                                                          \
    void name(T* value, cudaTextureObject_t texture, CUDA_ON_CPU_TEXTURE_PARAMETERS parameters, \
              cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {                             \
        using enum cuda_on_cpu::TextureShape;                                                   \
        *value = cuda_on_cpu::fetch_as<T>(texture, {.function = #name, __VA_ARGS__}, site);     \
    }

// The function itself, the form with a level and the form with a gradient.
#define CUDA_ON_CPU_FETCHES(name, parameters, Gradient, ...)                                            \
    CUDA_ON_CPU_FETCH(name, parameters, __VA_ARGS__)                                                    \
    CUDA_ON_CPU_FETCH(name##Lod, (CUDA_ON_CPU_TEXTURE_PARAMETERS parameters, float level), __VA_ARGS__, \
                      .level_from = cuda_on_cpu::TextureFetch::level_given, .level = level)             \
    CUDA_ON_CPU_FETCH(name##Grad,                                                                       \
                      (CUDA_ON_CPU_TEXTURE_PARAMETERS parameters, Gradient step_x, Gradient step_y),    \
                      __VA_ARGS__, .level_from = cuda_on_cpu::TextureFetch::level_from_gradient,        \
                      .dx = cuda_on_cpu::gradient(step_x), .dy = cuda_on_cpu::gradient(step_y))

CUDA_ON_CPU_FETCHES(tex1D, (float x), float, .shape = one, .x = x)
CUDA_ON_CPU_FETCHES(tex2D, (float x, float y), float2, .shape = two, .x = x, .y = y)
CUDA_ON_CPU_FETCHES(tex3D, (float x, float y, float z), float4, .shape = three, .x = x, .y = y, .z = z)
CUDA_ON_CPU_FETCHES(tex1DLayered, (float x, int layer), float, .shape = one_layered, .x = x, .layer = layer)
CUDA_ON_CPU_FETCHES(tex2DLayered, (float x, float y, int layer), float2, .shape = two_layered, .x = x, .y = y,
                    .layer = layer)
CUDA_ON_CPU_FETCHES(texCubemap, (float x, float y, float z), float4, .shape = cubemap, .x = x, .y = y, .z = z)
CUDA_ON_CPU_FETCHES(texCubemapLayered, (float x, float y, float z, int layer), float4,
                    .shape = cubemap_layered, .x = x, .y = y, .z = z, .layer = layer)
#undef CUDA_ON_CPU_FETCHES
#undef CUDA_ON_CPU_FETCH
#undef CUDA_ON_CPU_TEXTURE_PARAMETERS

// One channel of the four elements that a linear filter would use, in the order (x0, y1), (x1, y1),
// (x1, y0), (x0, y0).
template <class T>
T tex2Dgather(cudaTextureObject_t texture, float x, float y, int channel = 0,
              cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    static_assert(cuda_on_cpu::Channels<T>::kCount == 4, "tex2Dgather gives four values");
    return cuda_on_cpu::fetch_as<T>(texture,
                                    {.function = "tex2Dgather",
                                     .shape = cuda_on_cpu::TextureShape::two,
                                     .x = x,
                                     .y = y,
                                     .gathered_channel = channel},
                                    site);
}
template <class T>
void tex2Dgather(T* value, cudaTextureObject_t texture, float x, float y, int channel = 0,
                 cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    *value = tex2Dgather<T>(texture, x, y, channel, site);
}

template <class T>
T tex1Dfetch(cudaTextureObject_t texture, int x, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    return cuda_on_cpu::texel_as<T>(cuda_on_cpu::fetch_element(
        texture, x, std::is_floating_point_v<typename cuda_on_cpu::Channels<T>::Type>, site));
}
template <class T>
void tex1Dfetch(T* value, cudaTextureObject_t texture, int x,
                cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    *value = tex1Dfetch<T>(texture, x, site);
}

// Reading a surface has two forms, value = surf2Dread<T>(surface, x, y) and surf2Dread(&value,
// surface, x, y); writing has one.
#define CUDA_ON_CPU_SURFACE_PARAMETERS(...) __VA_ARGS__
#define CUDA_ON_CPU_SURFACE(name, parameters, shape, ...)                                                    \
    template <class T>                                                                                       \
    void name##read(T* value, cudaSurfaceObject_t surface, CUDA_ON_CPU_SURFACE_PARAMETERS parameters,        \
                    cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap,                                     \
                    cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {                                    \
        cuda_on_cpu::read_surface(                                                                           \
            surface, {#name "read", cuda_on_cpu::SurfaceShape::shape, __VA_ARGS__, sizeof(T), mode}, value,  \
            site);                                                                                           \
    }                                                                                                        \
    template <class T>                                                                                       \
    T name##read(cudaSurfaceObject_t surface, CUDA_ON_CPU_SURFACE_PARAMETERS parameters,                     \
                 cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap,                                        \
                 cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {                                       \
        T value;                                                                                             \
        cuda_on_cpu::read_surface(                                                                           \
            surface, {#name "read", cuda_on_cpu::SurfaceShape::shape, __VA_ARGS__, sizeof(T), mode}, &value, \
            site);                                                                                           \
        return value;                                                                                        \
    }                                                                                                        \
    template <class T>                                                                                       \
    void name##write(T value, cudaSurfaceObject_t surface, CUDA_ON_CPU_SURFACE_PARAMETERS parameters,        \
                     cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap,                                    \
                     cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {                                   \
        cuda_on_cpu::write_surface(                                                                          \
            surface, {#name "write", cuda_on_cpu::SurfaceShape::shape, __VA_ARGS__, sizeof(T), mode},        \
            &value, site);                                                                                   \
    }

CUDA_ON_CPU_SURFACE(surf1D, (int x), one, x, 0, 0)
CUDA_ON_CPU_SURFACE(surf2D, (int x, int y), two, x, y, 0)
CUDA_ON_CPU_SURFACE(surf3D, (int x, int y, int z), three, x, y, z)
CUDA_ON_CPU_SURFACE(surf1DLayered, (int x, int layer), one_layered, x, 0, layer)
CUDA_ON_CPU_SURFACE(surf2DLayered, (int x, int y, int layer), two_layered, x, y, layer)
CUDA_ON_CPU_SURFACE(surfCubemap, (int x, int y, int face), cubemap, x, y, face)
CUDA_ON_CPU_SURFACE(surfCubemapLayered, (int x, int y, int layer_and_face), cubemap, x, y, layer_and_face)
#undef CUDA_ON_CPU_SURFACE
#undef CUDA_ON_CPU_SURFACE_PARAMETERS
