// Texture and surface objects: their table, and the reads and writes of kernels through them. The
// rules of addressing and filtering are those of the CUDA C++ Programming Guide, appendix "Texture
// Fetching".
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "cuda_on_cpu/small_float.h"
#include "cuda_on_cpu/texture_fetch.h"
#include "cuda_on_cpu/thread.h"
#include "cuda_runtime_api.h"
#include "errors.hpp"
#include "memory.hpp"

namespace cuda_on_cpu {
namespace {

// --- Objects -------------------------------------------------------------------------------------

// Maps numbers to objects. A kernel looks an object up without a lock. Numbers are never reused, so
// the use of a destroyed object is detected.
template <class Object>
class Table {
  public:
    unsigned long long add(std::unique_ptr<Object> object) {
        const std::scoped_lock lock(mutex_);
        if (next_ == kChunks * kChunk) return 0;
        auto& chunk = chunks_[next_ / kChunk];
        if (chunk == nullptr) chunk = new std::array<std::atomic<Object*>, kChunk>{};
        (*chunk.load())[next_ % kChunk] = object.release();
        return next_++;
    }
    const Object* find(unsigned long long number) const {
        if (number == 0 || number >= kChunks * kChunk) return nullptr;
        const auto* chunk = chunks_[number / kChunk].load(std::memory_order_acquire);
        return chunk == nullptr ? nullptr : (*chunk)[number % kChunk].load(std::memory_order_acquire);
    }
    bool remove(unsigned long long number) {
        const std::scoped_lock lock(mutex_);
        if (find(number) == nullptr) return false;
        delete (*chunks_[number / kChunk].load())[number % kChunk].exchange(nullptr);
        return true;
    }

  private:
    static constexpr std::size_t kChunk = 1024;
    static constexpr std::size_t kChunks = 4096;
    std::mutex mutex_;
    std::size_t next_ = 1;
    std::array<std::atomic<std::array<std::atomic<Object*>, kChunk>*>, kChunks> chunks_{};
};

enum class ChannelType { u8, s8, u16, s16, u32, s32, f16, f32 };

struct Format {
    ChannelType type;
    int channels;
    int channel_bytes;
    bool normalized;  // elements are always read as normalised floats

    std::size_t bytes() const { return static_cast<std::size_t>(channels * channel_bytes); }
    bool is_float() const { return type == ChannelType::f16 || type == ChannelType::f32; }
};

struct Level {
    char* data;
    int width, height, depth;  // the depth includes layers and faces
    std::size_t pitch;
    std::size_t slice_bytes;
};

// The memory of a texture or surface, independent of how it is read: levels of rows of elements.
struct Resource {
    cudaResourceDesc description;
    Format format;
    std::vector<Level> levels;
    bool linear = false;
    // Number of elements of linear memory that lie inside the allocation.
    int readable = std::numeric_limits<int>::max();
    bool layered = false;
    bool cubemap = false;
    bool gather = false;
    bool stores = false;
    int dimensions = 1;
};

struct Texture {
    Resource resource;
    cudaTextureDesc description;
    bool has_view = false;
    cudaResourceViewDesc view;
    bool as_float;  // a fetch returns floats
    std::array<cudaTextureAddressMode, 3> modes;
};

struct Surface {
    Resource resource;
};

Table<Texture> textures;
Table<Surface> surfaces;

Format format_of(const cudaChannelFormatDesc& d) {
    const int channels = 1 + (d.y != 0) + (d.z != 0) + (d.w != 0);
    const bool is_signed =
        d.f == cudaChannelFormatKindSigned ||
        (d.f >= cudaChannelFormatKindSignedNormalized8X1 && d.f <= cudaChannelFormatKindSignedNormalized16X4);
    const bool normalized = d.f >= cudaChannelFormatKindUnsignedNormalized8X1;
    ChannelType type = ChannelType::f32;
    if (d.f == cudaChannelFormatKindFloat)
        type = d.x == 16 ? ChannelType::f16 : ChannelType::f32;
    else if (d.x == 8)
        type = is_signed ? ChannelType::s8 : ChannelType::u8;
    else if (d.x == 16)
        type = is_signed ? ChannelType::s16 : ChannelType::u16;
    else
        type = is_signed ? ChannelType::s32 : ChannelType::u32;
    return {type, channels, d.x / 8, normalized};
}

Level level_of(const cudaArray& array) {
    return {array.data,
            static_cast<int>(array.extent.width),
            static_cast<int>(array.rows()),
            static_cast<int>(array.slices()),
            array.row_bytes(),
            array.slice_bytes()};
}

void take_array_properties(Resource& resource, const cudaArray& array) {
    resource.format = format_of(array.format);
    resource.layered = (array.flags & cudaArrayLayered) != 0;
    resource.cubemap = (array.flags & cudaArrayCubemap) != 0;
    resource.gather = (array.flags & cudaArrayTextureGather) != 0;
    resource.stores = (array.flags & cudaArraySurfaceLoadStore) != 0;
    const bool volume = !resource.layered && !resource.cubemap && array.extent.depth > 0;
    resource.dimensions = volume ? 3 : array.extent.height > 0 ? 2 : 1;
}

constexpr std::size_t kTextureAlignment = 512;
constexpr std::size_t kPitchAlignment = 32;

// Memory that is not an array. A GPU requires a multiple of 512 bytes, which every allocation
// satisfies.
cudaError_t check_memory(const char* function, const void* pointer, std::size_t bytes) {
    if (pointer == nullptr) return refuse(cudaErrorInvalidValue, function, "devPtr is null");
    if (!device_accessible(pointer, bytes)) {
        return refuse(cudaErrorInvalidValue, function, "devPtr = %p, %zu bytes: not device memory%s%s",
                      pointer, bytes, find_allocation(pointer) ? " of one allocation; it starts " : "",
                      describe_address(pointer).c_str());
    }
    const auto allocation = find_allocation(pointer);
    if (!allocation) return cudaSuccess;
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(pointer) - allocation->begin);
    if (offset % kTextureAlignment == 0) return cudaSuccess;
    return refuse(
        cudaErrorInvalidValue, function,
        "devPtr is %zu bytes behind the start of its allocation; expected a multiple of the device's "
        "textureAlignment, %zu",
        offset, kTextureAlignment);
}

cudaError_t check_memory_format(const char* function, const cudaChannelFormatDesc& d) {
    if (element_bytes(d) != 0) return cudaSuccess;
    return refuse(
        cudaErrorInvalidChannelDescriptor, function,
        "desc has channels of %d, %d, %d, %d bits, kind %d; expected 1, 2 or 4 channels of 8, 16 or "
        "32 bits each",
        d.x, d.y, d.z, d.w, static_cast<int>(d.f));
}

cudaError_t resolve_linear(const char* function, Resource& resource) {
    const auto& linear = resource.description.res.linear;
    if (const cudaError_t error = check_memory_format(function, linear.desc); error != cudaSuccess)
        return error;
    constexpr std::size_t kMostElements = std::size_t{1} << 28;
    resource.format = format_of(linear.desc);
    const std::size_t elements = linear.sizeInBytes / resource.format.bytes();
    if (elements == 0 || elements > kMostElements)
        return refuse(cudaErrorInvalidValue, function, "sizeInBytes is %zu: %zu elements; expected 1 to %zu",
                      linear.sizeInBytes, elements, kMostElements);
    // A driver does not check the size of the allocation, so a fetch past its end only fails in the
    // kernel.
    std::size_t size = linear.sizeInBytes;
    if (const auto allocation = find_allocation(linear.devPtr); allocation && !allocation->freed) {
        const auto left = static_cast<std::size_t>(allocation->begin + allocation->size -
                                                   static_cast<const char*>(linear.devPtr));
        if (device_accessible(linear.devPtr, 1) && left < size) {
            std::fprintf(stderr,
                         "cuda_on_cpu: %s: sizeInBytes is %zu, of which %zu lie in the allocation: fetches "
                         "from behind it are errors\n",
                         function, size, left);
            size = left;
        }
    }
    if (const cudaError_t error = check_memory(function, linear.devPtr, size); error != cudaSuccess)
        return error;
    resource.linear = true;
    if (size < linear.sizeInBytes) resource.readable = static_cast<int>(size / resource.format.bytes());
    resource.levels = {{static_cast<char*>(linear.devPtr), static_cast<int>(elements), 1, 1,
                        linear.sizeInBytes, linear.sizeInBytes}};
    return cudaSuccess;
}

cudaError_t resolve_pitched(const char* function, Resource& resource) {
    const auto& p = resource.description.res.pitch2D;
    if (const cudaError_t error = check_memory_format(function, p.desc); error != cudaSuccess) return error;
    resource.format = format_of(p.desc);
    if (p.width == 0 || p.height == 0 || p.width > 131072 || p.height > 65000)
        return refuse(cudaErrorInvalidValue, function,
                      "width and height are %zu and %zu; expected 1 to 131072 and 1 to 65000", p.width,
                      p.height);
    if (p.pitchInBytes % kPitchAlignment != 0 || p.pitchInBytes < p.width * resource.format.bytes())
        return refuse(cudaErrorInvalidValue, function,
                      "pitchInBytes is %zu for rows of %zu bytes; expected at least that, and a multiple of "
                      "the device's texturePitchAlignment, %zu",
                      p.pitchInBytes, p.width * resource.format.bytes(), kPitchAlignment);
    if (const cudaError_t error = check_memory(
            function, p.devPtr, (p.height - 1) * p.pitchInBytes + p.width * resource.format.bytes());
        error != cudaSuccess) {
        return error;
    }
    resource.dimensions = 2;
    resource.levels = {{static_cast<char*>(p.devPtr), static_cast<int>(p.width), static_cast<int>(p.height),
                        1, p.pitchInBytes, p.pitchInBytes * p.height}};
    return cudaSuccess;
}

cudaError_t resolve(const char* function, Resource& resource) {
    const cudaResourceDesc& d = resource.description;
    switch (d.resType) {
        case cudaResourceTypeArray:
            if (!is_live_array(d.res.array.array))
                return refuse(cudaErrorInvalidValue, function, "array %p is no array that exists",
                              static_cast<void*>(d.res.array.array));
            take_array_properties(resource, *d.res.array.array);
            resource.levels = {level_of(*d.res.array.array)};
            return cudaSuccess;
        case cudaResourceTypeMipmappedArray:
            if (!is_live_array(d.res.mipmap.mipmap))
                return refuse(cudaErrorInvalidValue, function, "mipmap %p is no mipmapped array that exists",
                              static_cast<void*>(d.res.mipmap.mipmap));
            take_array_properties(resource, *d.res.mipmap.mipmap->levels.front());
            for (const cudaArray* level : d.res.mipmap.mipmap->levels)
                resource.levels.push_back(level_of(*level));
            return cudaSuccess;
        case cudaResourceTypeLinear:
            return resolve_linear(function, resource);
        case cudaResourceTypePitch2D:
            return resolve_pitched(function, resource);
    }
    return refuse(cudaErrorInvalidValue, function, "resType is %d", static_cast<int>(d.resType));
}

Format view_format(cudaResourceViewFormat view) {
    static constexpr std::pair<ChannelType, int> kTypes[] = {
        {ChannelType::u8, 1},  {ChannelType::s8, 1},  {ChannelType::u16, 2}, {ChannelType::s16, 2},
        {ChannelType::u32, 4}, {ChannelType::s32, 4}, {ChannelType::f16, 2}, {ChannelType::f32, 4}};
    static constexpr int kChannels[] = {1, 2, 4};
    const int index = static_cast<int>(view) - 1;
    return {kTypes[index / 3].first, kChannels[index % 3], kTypes[index / 3].second, false};
}

cudaError_t apply_view(const char* function, Resource& resource, const cudaResourceViewDesc& view) {
    if (resource.linear || resource.description.resType == cudaResourceTypePitch2D)
        return refuse(cudaErrorInvalidValue, function, "a resource view is for arrays; expected null");
    if (view.format < cudaResViewFormatNone || view.format > cudaResViewFormatFloat4)
        return refuse(cudaErrorNotSupported, function, "the view's format is %d: compressed blocks",
                      static_cast<int>(view.format));
    if (view.format != cudaResViewFormatNone) {
        const Format format = view_format(view.format);
        if (format.bytes() != resource.format.bytes())
            return refuse(cudaErrorInvalidValue, function,
                          "the view's elements are of %zu bytes, the array's of %zu", format.bytes(),
                          resource.format.bytes());
        resource.format = format;
    }
    const auto levels = static_cast<unsigned>(resource.levels.size());
    if (view.firstMipmapLevel > view.lastMipmapLevel || view.lastMipmapLevel >= levels)
        return refuse(cudaErrorInvalidValue, function, "the view is of levels %u to %u; the array has %u",
                      view.firstMipmapLevel, view.lastMipmapLevel, levels);
    resource.levels = std::vector<Level>(resource.levels.begin() + view.firstMipmapLevel,
                                         resource.levels.begin() + view.lastMipmapLevel + 1);
    if (!resource.layered) return cudaSuccess;
    const auto layers = static_cast<unsigned>(resource.levels.front().depth);
    if (view.firstLayer > view.lastLayer || view.lastLayer >= layers)
        return refuse(cudaErrorInvalidValue, function, "the view is of layers %u to %u; the array has %u",
                      view.firstLayer, view.lastLayer, layers);
    for (Level& level : resource.levels) {
        level.data += view.firstLayer * level.slice_bytes;
        level.depth = static_cast<int>(view.lastLayer - view.firstLayer + 1);
    }
    return cudaSuccess;
}

cudaError_t check_description(const char* function, const cudaTextureDesc& d, const Resource& resource,
                              bool as_float) {
    for (const cudaTextureAddressMode mode : d.addressMode) {
        if (mode < cudaAddressModeWrap || mode > cudaAddressModeBorder)
            return refuse(cudaErrorInvalidValue, function, "addressMode is %d", static_cast<int>(mode));
    }
    if ((d.filterMode | 1) != 1 || (d.mipmapFilterMode | 1) != 1)
        return refuse(cudaErrorInvalidValue, function, "filterMode and mipmapFilterMode are %d and %d",
                      static_cast<int>(d.filterMode), static_cast<int>(d.mipmapFilterMode));
    const Format& format = resource.format;
    if (d.readMode == cudaReadModeNormalizedFloat && !format.is_float() && format.channel_bytes > 2)
        return refuse(cudaErrorInvalidNormSetting, function,
                      "readMode is cudaReadModeNormalizedFloat and the elements are integers of 32 bits; "
                      "expected integers of 8 or 16");
    if (d.filterMode == cudaFilterModeLinear && !as_float && !resource.linear)
        return refuse(cudaErrorInvalidFilterSetting, function,
                      "filterMode is cudaFilterModeLinear and the elements are read as integers; expected "
                      "floats, or integers of 8 or 16 bits and cudaReadModeNormalizedFloat");
    if (resource.description.resType == cudaResourceTypeMipmappedArray && d.normalizedCoords == 0)
        return refuse(cudaErrorInvalidValue, function,
                      "normalizedCoords is 0; expected 1 for a mipmapped array");
    if (d.seamlessCubemap != 0)
        return refuse(cudaErrorNotSupported, function,
                      "seamlessCubemap is %d: filtering across the edges of a cube does not exist here",
                      d.seamlessCubemap);
    return cudaSuccess;
}

// --- Elements ------------------------------------------------------------------------------------

union Values {
    float f[4];
    std::uint32_t u[4];
};

template <class T>
T read(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

float linear_from_srgb(float s) {
    return s <= 0.04045F ? s / 12.92F : std::pow((s + 0.055F) / 1.055F, 2.4F);
}

float normalized(ChannelType type, const char* from) {
    switch (type) {
        case ChannelType::u8:
            return static_cast<float>(read<std::uint8_t>(from)) / 255.0F;
        case ChannelType::s8:
            return std::max(static_cast<float>(read<std::int8_t>(from)) / 127.0F, -1.0F);
        case ChannelType::u16:
            return static_cast<float>(read<std::uint16_t>(from)) / 65535.0F;
        case ChannelType::s16:
            return std::max(static_cast<float>(read<std::int16_t>(from)) / 32767.0F, -1.0F);
        case ChannelType::f16:
            return decode<Binary16>(read<std::uint16_t>(from));
        default:
            return read<float>(from);
    }
}

std::uint32_t integer(ChannelType type, const char* from) {
    switch (type) {
        case ChannelType::u8:
            return read<std::uint8_t>(from);
        case ChannelType::s8:
            return static_cast<std::uint32_t>(std::int32_t{read<std::int8_t>(from)});
        case ChannelType::u16:
            return read<std::uint16_t>(from);
        case ChannelType::s16:
            return static_cast<std::uint32_t>(std::int32_t{read<std::int16_t>(from)});
        default:
            return read<std::uint32_t>(from);
    }
}

Values element_at(const Texture& texture, const char* element) {
    const Format& format = texture.resource.format;
    const std::uint32_t one = texture.as_float ? std::bit_cast<std::uint32_t>(1.0f) : 1;
    if (format.channel_bytes == 4) {  // no conversion
        // Put together in registers: a processor waits where it loads more bytes than one store
        // wrote.
        const auto channel = [element](int i) { return read<std::uint32_t>(element + 4 * i); };
        switch (format.channels) {
            case 1:
                return {.u = {channel(0), 0, 0, one}};
            case 2:
                return {.u = {channel(0), channel(1), 0, one}};
            default:
                return {.u = {channel(0), channel(1), channel(2), format.channels == 4 ? channel(3) : one}};
        }
    }
    Values values{.u = {0, 0, 0, one}};
    for (int i = 0; i < format.channels; ++i, element += format.channel_bytes) {
        if (texture.as_float)
            values.f[i] = normalized(format.type, element);
        else
            values.u[i] = integer(format.type, element);
    }
    if (texture.description.sRGB != 0 && format.type == ChannelType::u8 && texture.as_float) {
        for (int i = 0; i < 3; ++i)
            values.f[i] = linear_from_srgb(values.f[i]);
    }
    return values;
}

constexpr int kBorder = -1;

Values element(const Texture& texture, const Level& level, int x, int y, int z) {
    if (x == kBorder || y == kBorder || z == kBorder) {
        Values border;
        std::memcpy(border.f, texture.description.borderColor, sizeof border.f);
        return border;
    }
    return element_at(texture, level.data + static_cast<std::size_t>(z) * level.slice_bytes +
                                   static_cast<std::size_t>(y) * level.pitch +
                                   static_cast<std::size_t>(x) * texture.resource.format.bytes());
}

// --- Coordinates ---------------------------------------------------------------------------------

// The index to read in place of an out-of-range one, or kBorder.
int outside(cudaTextureAddressMode mode, int i, int size) {
    switch (mode) {
        case cudaAddressModeWrap: {
            const int rest = i % size;
            return rest < 0 ? rest + size : rest;
        }
        case cudaAddressModeMirror: {
            int rest = i % (2 * size);
            if (rest < 0) rest += 2 * size;
            return rest < size ? rest : 2 * size - 1 - rest;
        }
        case cudaAddressModeBorder:
            return kBorder;
        default:
            return i < 0 ? 0 : size - 1;
    }
}

inline int addressed(cudaTextureAddressMode mode, int i, int size) {
    return i >= 0 && i < size ? i : outside(mode, i, size);
}

// The elements that a coordinate selects: the nearest one, or for a linear filter the two around
// it, with the weight of the second one.
struct Footprint {
    int first;
    int second;
    float weight;
};

// Coordinates beyond this are out of range in any texture. Twice this value, in units of 1/256,
// still fits a 64-bit integer.
constexpr double kFar = 1 << 28;

double in_elements(float coordinate, int size, bool normalized) {
    const double x = normalized ? static_cast<double>(coordinate) * size : static_cast<double>(coordinate);
    return std::isnan(x) ? 0 : std::clamp(x, -kFar, kFar);
}

// std::floor for a number that fits the integer type. Without SSE 4.1 std::floor would take many
// instructions.
template <class Integer>
Integer floor_of(double x) {
    const auto towards_zero = static_cast<Integer>(x);
    return towards_zero - (x < static_cast<double>(towards_zero) ? 1 : 0);
}

int nearest(const Texture& texture, int axis, float coordinate, int size) {
    const double x = in_elements(coordinate, size, texture.description.normalizedCoords != 0);
    return addressed(texture.modes[static_cast<std::size_t>(axis)], floor_of<int>(x), size);
}

// The weight has 8 fractional bits, as on a GPU, and can be 1, which selects the second element.
Footprint footprint(const Texture& texture, int axis, float coordinate, int size) {
    constexpr int kFractionBits = 8;
    const double x = in_elements(coordinate, size, texture.description.normalizedCoords != 0) - 0.5;
    const auto fixed = floor_of<std::int64_t>(x * (1 << kFractionBits) + 0.5);
    const auto i = static_cast<int>(fixed >> kFractionBits);
    const cudaTextureAddressMode mode = texture.modes[static_cast<std::size_t>(axis)];
    return {addressed(mode, i, size), addressed(mode, i + 1, size),
            static_cast<float>(fixed & ((1 << kFractionBits) - 1)) / (1 << kFractionBits)};
}

// (1 - weight) a + weight b. A value with weight 0 is ignored, even if it is NaN.
Values mix(const Values& a, const Values& b, float weight) {
    if (weight == 0) return a;
    Values mixed;
    for (int i = 0; i < 4; ++i)
        mixed.f[i] = (1 - weight) * a.f[i] + weight * b.f[i];
    return mixed;
}

// --- Fetching ------------------------------------------------------------------------------------

// A point of one level: up to three filtered coordinates, and the slice, which is not filtered.
struct Point {
    int dimensions;
    float x, y, z;
    int slice;
};

Values fetch_in_level(const Texture& texture, const Level& level, const Point& p) {
    if (texture.description.filterMode == cudaFilterModePoint) {
        const int x = nearest(texture, 0, p.x, level.width);
        const int y = p.dimensions > 1 ? nearest(texture, 1, p.y, level.height) : 0;
        const int z = p.dimensions > 2 ? nearest(texture, 2, p.z, level.depth) : p.slice;
        return element(texture, level, x, y, z);
    }
    const Footprint x = footprint(texture, 0, p.x, level.width);
    const auto row = [&](int y, int z) {
        return mix(element(texture, level, x.first, y, z), element(texture, level, x.second, y, z), x.weight);
    };
    if (p.dimensions == 1) return row(0, p.slice);
    const Footprint y = footprint(texture, 1, p.y, level.height);
    const auto plane = [&](int z) { return mix(row(y.first, z), row(y.second, z), y.weight); };
    if (p.dimensions == 2) return plane(p.slice);
    const Footprint z = footprint(texture, 2, p.z, level.depth);
    return mix(plane(z.first), plane(z.second), z.weight);
}

Values fetch_gathered(const Texture& texture, const Level& level, const Point& p, int channel) {
    const Footprint x = footprint(texture, 0, p.x, level.width);
    const Footprint y = footprint(texture, 1, p.y, level.height);
    const auto one = [&](int i, int j) { return element(texture, level, i, j, p.slice).u[channel]; };
    Values values;
    values.u[0] = one(x.first, y.second);
    values.u[1] = one(x.second, y.second);
    values.u[2] = one(x.second, y.first);
    values.u[3] = one(x.first, y.first);
    return values;
}

// The mipmap level whose elements are as far apart as the pixels.
float level_for(const Texture& texture, const TextureFetch& fetch) {
    if (fetch.level_from == TextureFetch::level_0) return 0;
    if (fetch.level_from == TextureFetch::level_given) return fetch.level;
    const Level& level = texture.resource.levels.front();
    const auto length = [&](const float4& step) {
        const float x = step.x * static_cast<float>(level.width);
        const float y = step.y * static_cast<float>(level.height);
        const float z = fetch.shape == TextureShape::three ? step.z * static_cast<float>(level.depth) : 0;
        return std::sqrt(x * x + y * y + z * z);
    };
    return std::log2(std::max({length(fetch.dx), length(fetch.dy), 1e-30F}));
}

Values fetch_point(const Texture& texture, const TextureFetch& fetch, const Point& point) {
    const std::vector<Level>& levels = texture.resource.levels;
    if (fetch.gathered_channel >= 0)
        return fetch_gathered(texture, levels.front(), point, fetch.gathered_channel);
    if (levels.size() == 1) return fetch_in_level(texture, levels.front(), point);
    const cudaTextureDesc& d = texture.description;
    const float last = static_cast<float>(levels.size() - 1);
    float level = level_for(texture, fetch) + d.mipmapLevelBias;
    level = std::clamp(
        std::clamp(level, d.minMipmapLevelClamp, std::max(d.minMipmapLevelClamp, d.maxMipmapLevelClamp)),
        0.0F, last);
    if (d.mipmapFilterMode == cudaFilterModePoint)
        return fetch_in_level(texture, levels[static_cast<std::size_t>(level + 0.5F)], point);
    const int fixed = static_cast<int>(level * 256 + 0.5F);
    const auto below = static_cast<std::size_t>(fixed / 256);
    const float weight = static_cast<float>(fixed % 256) / 256;
    const Values fine = fetch_in_level(texture, levels[below], point);
    return weight == 0 ? fine : mix(fine, fetch_in_level(texture, levels[below + 1], point), weight);
}

// The face of a cube that a direction hits, and the position on it, from 0 to 1 in each coordinate.
struct FacePoint {
    int face;
    float s, t;
};

FacePoint on_cube(float x, float y, float z) {
    const float ax = std::fabs(x);
    const float ay = std::fabs(y);
    const float az = std::fabs(z);
    int face = 0;
    float s = 0;
    float t = 0;
    float m = 0;
    if (ax >= ay && ax >= az) {
        face = x < 0;
        m = ax;
        s = x < 0 ? z : -z;
        t = -y;
    } else if (ay >= az) {
        face = 2 + (y < 0);
        m = ay;
        s = x;
        t = y < 0 ? -z : z;
    } else {
        face = 4 + (z < 0);
        m = az;
        s = z < 0 ? -x : x;
        t = -y;
    }
    return {face, (s / m + 1) / 2, (t / m + 1) / 2};
}

const char* shape_of(const Resource& r) {
    if (r.linear) return "linear memory, which tex1Dfetch reads";
    if (r.cubemap) return r.layered ? "a layered cubemap" : "a cubemap";
    if (r.layered) return r.dimensions == 1 ? "a one-dimensional layered array" : "a layered array";
    return r.dimensions == 1   ? "a one-dimensional array"
           : r.dimensions == 2 ? "two-dimensional"
                               : "a three-dimensional array";
}

// Two-dimensional resources with a single row may also be read as one-dimensional ones, and vice
// versa.
bool fits(TextureShape shape, const Resource& r) {
    const bool flat = !r.linear && !r.layered && !r.cubemap;
    switch (shape) {
        case TextureShape::linear:
            return flat || r.linear;
        case TextureShape::one:
            return flat && r.dimensions < 3 && r.levels.front().height == 1;
        case TextureShape::two:
            return flat && r.dimensions < 3;
        case TextureShape::three:
            return flat && r.dimensions == 3;
        case TextureShape::one_layered:
            return r.layered && !r.cubemap && r.levels.front().height == 1;
        case TextureShape::two_layered:
            return r.layered || r.cubemap;
        case TextureShape::cubemap:
            return r.cubemap && !r.layered;
        case TextureShape::cubemap_layered:
            return r.cubemap && r.layered;
    }
    return false;
}

[[noreturn]] void fail(const char* function, const std::string& message, Site site,
                       cudaError_t error = cudaErrorLaunchFailure) {
    device_failure(error, (std::string(function) + ": " + message).c_str(), site);
}

const Texture& texture_of(cudaTextureObject_t number, const char* function, TextureShape shape, Site site) {
    const Texture* texture = textures.find(number);
    if (texture == nullptr)
        fail(function,
             "texture object " + std::to_string(number) + " does not exist; expected one that " +
                 "cudaCreateTextureObject made and that is not destroyed",
             site);
    if (!fits(shape, texture->resource))
        fail(function, std::string("the texture is ") + shape_of(texture->resource), site);
    return *texture;
}

// Reading floats as integers, or vice versa, returns their bits, as on a GPU. It is rarely
// intended, so this reports it once.
void note_other_type(const Texture& texture, const char* function, bool as_float, Site site) {
    if (texture.as_float == as_float || (texture.resource.format.channel_bytes == 4)) return;
    static std::atomic<bool> told = false;
    if (told.exchange(true)) return;
    std::fprintf(
        stderr,
        "cuda_on_cpu: %s:%d: %s of a type of %s, but the texture gives %s: the bits are taken as they "
        "are. cudaReadModeNormalizedFloat makes floats of integers\n",
        site.file, site.line, function, as_float ? "floats" : "integers", as_float ? "integers" : "floats");
}

Texel texel_of(const Values& values) {
    Texel texel;
    std::memcpy(texel.bits, values.u, sizeof texel.bits);
    return texel;
}

}  // namespace

Texel fetch_texel(cudaTextureObject_t number, const TextureFetch& fetch, bool as_float, Site site) {
    const Texture& texture = texture_of(number, fetch.function, fetch.shape, site);
    note_other_type(texture, fetch.function, as_float, site);
    // The layer is treated as unsigned, as on an H200, so layer -1 becomes the last one.
    const auto layer = [&](int layers) {
        return static_cast<int>(
            std::min(static_cast<unsigned>(fetch.layer), static_cast<unsigned>(layers - 1)));
    };
    Point point{2, fetch.x, fetch.y, fetch.z, 0};
    const int depth = texture.resource.levels.front().depth;
    switch (fetch.shape) {
        case TextureShape::one:
            point.dimensions = 1;
            break;
        case TextureShape::three:
            point.dimensions = 3;
            break;
        case TextureShape::one_layered:
            point.dimensions = 1;
            point.slice = layer(depth);
            break;
        case TextureShape::two_layered:
            point.slice = layer(depth);
            break;
        case TextureShape::cubemap:
        case TextureShape::cubemap_layered: {
            const FacePoint face = on_cube(fetch.x, fetch.y, fetch.z);
            const bool scale = texture.description.normalizedCoords == 0;  // directions are not in elements
            const auto size = static_cast<float>(texture.resource.levels.front().width);
            point = {2, scale ? face.s * size : face.s, scale ? face.t * size : face.t, 0,
                     layer(depth / 6) * 6 + face.face};
            break;
        }
        default:
            break;
    }
    if (fetch.gathered_channel >= 0 && !texture.resource.gather &&
        texture.resource.description.resType != cudaResourceTypePitch2D)
        fail(fetch.function, "the array was made without cudaArrayTextureGather", site);
    if (fetch.gathered_channel > 3)
        fail(fetch.function, "channel " + std::to_string(fetch.gathered_channel) + "; expected 0 to 3", site);
    return texel_of(fetch_point(texture, fetch, point));
}

Texel fetch_element(cudaTextureObject_t number, int index, bool as_float, Site site) {
    const Texture& texture = texture_of(number, "tex1Dfetch", TextureShape::linear, site);
    note_other_type(texture, "tex1Dfetch", as_float, site);
    const Level& level = texture.resource.levels.front();
    if (index >= texture.resource.readable && index < level.width)
        fail("tex1Dfetch",
             "element " + std::to_string(index) + " lies behind the allocation, which has " +
                 std::to_string(texture.resource.readable),
             site, cudaErrorIllegalAddress);
    if (index >= 0 && index < level.width) return texel_of(element(texture, level, index, 0, 0));
    return {};
}

// --- Surfaces ------------------------------------------------------------------------------------

namespace {

// The address of an access; null if a boundary mode makes it read zeros or write nothing.
char* accessed(cudaSurfaceObject_t number, const SurfaceAccess& access, Site site) {
    const Surface* surface = surfaces.find(number);
    if (surface == nullptr)
        fail(access.function,
             "surface object " + std::to_string(number) + " does not exist; expected one that " +
                 "cudaCreateSurfaceObject made and that is not destroyed",
             site);
    const Resource& r = surface->resource;
    const bool flat = !r.layered && !r.cubemap;
    const Level& level = r.levels.front();
    const bool matches = access.shape == SurfaceShape::one           ? flat && level.height == 1
                         : access.shape == SurfaceShape::two         ? flat && r.dimensions < 3
                         : access.shape == SurfaceShape::three       ? flat && r.dimensions == 3
                         : access.shape == SurfaceShape::one_layered ? r.layered && level.height == 1
                         : access.shape == SurfaceShape::two_layered ? r.layered || r.cubemap
                                                                     : r.cubemap;
    if (!matches) fail(access.function, std::string("the surface is ") + shape_of(r), site);
    const auto element = static_cast<int>(r.format.bytes());
    if (static_cast<int>(access.bytes) != element)
        fail(access.function,
             "a value of " + std::to_string(access.bytes) + " bytes, but the surface's elements are of " +
                 std::to_string(element),
             site);
    if (access.x % element != 0)
        fail(access.function,
             "x is " + std::to_string(access.x) + "; expected bytes, a multiple of the element's " +
                 std::to_string(element),
             site, cudaErrorMisalignedAddress);
    const int row_bytes = level.width * element;
    int x = access.x;
    int y = access.y;
    int z = access.z;
    const bool inside = x >= 0 && x < row_bytes && y >= 0 && y < level.height && z >= 0 && z < level.depth;
    if (!inside && access.mode == cudaBoundaryModeTrap) {
        fail(access.function,
             "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) +
                 ") is outside the surface of " + std::to_string(row_bytes) + " bytes x " +
                 std::to_string(level.height) + " x " + std::to_string(level.depth) +
                 " (x is in bytes; cudaBoundaryModeTrap)",
             site);
    }
    if (!inside && access.mode == cudaBoundaryModeZero) return nullptr;
    x = std::clamp(x, 0, row_bytes - element);
    y = std::clamp(y, 0, level.height - 1);
    z = std::clamp(z, 0, level.depth - 1);
    return level.data + static_cast<std::size_t>(z) * level.slice_bytes +
           static_cast<std::size_t>(y) * level.pitch + static_cast<std::size_t>(x);
}

}  // namespace

void read_surface(cudaSurfaceObject_t surface, const SurfaceAccess& access, void* value, Site site) {
    const char* from = accessed(surface, access, site);
    if (from == nullptr)
        std::memset(value, 0, access.bytes);
    else
        std::memcpy(value, from, access.bytes);
}

void write_surface(cudaSurfaceObject_t surface, const SurfaceAccess& access, const void* value, Site site) {
    char* const to = accessed(surface, access, site);
    if (to != nullptr) std::memcpy(to, value, access.bytes);
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* number, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description, const cudaResourceViewDesc* view) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (number == nullptr || resource == nullptr || description == nullptr)
        return refuse(cudaErrorInvalidValue, __func__,
                      "the texture to set, the resource or the description is null");
    auto texture = std::make_unique<Texture>();
    texture->resource.description = *resource;
    texture->description = *description;
    if (const cudaError_t error = resolve(__func__, texture->resource); error != cudaSuccess) return error;
    if (view != nullptr) {
        texture->has_view = true;
        texture->view = *view;
        if (const cudaError_t error = apply_view(__func__, texture->resource, *view); error != cudaSuccess)
            return error;
    }
    const Format& format = texture->resource.format;
    texture->as_float =
        format.is_float() || format.normalized || description->readMode == cudaReadModeNormalizedFloat;
    if (const cudaError_t error =
            check_description(__func__, *description, texture->resource, texture->as_float);
        error != cudaSuccess) {
        return error;
    }
    for (std::size_t i = 0; i < 3; ++i) {
        const cudaTextureAddressMode mode = description->addressMode[i];
        const bool periodic = mode == cudaAddressModeWrap || mode == cudaAddressModeMirror;
        const bool possible = description->normalizedCoords != 0 && !texture->resource.cubemap;
        texture->modes[i] = periodic && !possible ? cudaAddressModeClamp : mode;
    }
    *number = textures.add(std::move(texture));
    if (*number == 0) return refuse(cudaErrorMemoryAllocation, __func__, "too many texture objects");
    return cudaSuccess;
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t number) {
    if (number == 0 || textures.remove(number)) return cudaSuccess;
    return refuse(cudaErrorInvalidValue, __func__, "texture object %llu does not exist", number);
}

namespace {

cudaError_t find_texture(const char* function, cudaTextureObject_t number, const void* result,
                         const Texture** texture) {
    if (result == nullptr) return refuse(cudaErrorInvalidValue, function, "the description to set is null");
    *texture = textures.find(number);
    if (*texture != nullptr) return cudaSuccess;
    return refuse(cudaErrorInvalidValue, function, "texture object %llu does not exist", number);
}

}  // namespace

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t number) {
    const Texture* texture = nullptr;
    const cudaError_t error = find_texture(__func__, number, resource, &texture);
    if (error == cudaSuccess) *resource = texture->resource.description;
    return error;
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* description, cudaTextureObject_t number) {
    const Texture* texture = nullptr;
    const cudaError_t error = find_texture(__func__, number, description, &texture);
    if (error == cudaSuccess) *description = texture->description;
    return error;
}

cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* view, cudaTextureObject_t number) {
    const Texture* texture = nullptr;
    const cudaError_t error = find_texture(__func__, number, view, &texture);
    if (error != cudaSuccess) return error;
    if (!texture->has_view)
        return refuse(cudaErrorInvalidValue, __func__, "texture object %llu has no resource view", number);
    *view = texture->view;
    return cudaSuccess;
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* number, const cudaResourceDesc* resource) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (number == nullptr || resource == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "the surface to set or the resource is null");
    if (resource->resType != cudaResourceTypeArray)
        return refuse(cudaErrorInvalidValue, __func__, "resType is %d; expected cudaResourceTypeArray",
                      static_cast<int>(resource->resType));
    auto surface = std::make_unique<Surface>();
    surface->resource.description = *resource;
    if (const cudaError_t error = resolve(__func__, surface->resource); error != cudaSuccess) return error;
    if (!surface->resource.stores)
        return refuse(cudaErrorInvalidValue, __func__,
                      "the array was made without cudaArraySurfaceLoadStore");
    *number = surfaces.add(std::move(surface));
    if (*number == 0) return refuse(cudaErrorMemoryAllocation, __func__, "too many surface objects");
    return cudaSuccess;
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t number) {
    if (number == 0 || surfaces.remove(number)) return cudaSuccess;
    return refuse(cudaErrorInvalidValue, __func__, "surface object %llu does not exist", number);
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t number) {
    if (resource == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the description to set is null");
    const Surface* surface = surfaces.find(number);
    if (surface == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "surface object %llu does not exist", number);
    *resource = surface->resource.description;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(std::size_t* width, const cudaChannelFormatDesc* format,
                                                 int device) {
    if (width == nullptr || format == nullptr || device != 0)
        return refuse(device != 0 ? cudaErrorInvalidDevice : cudaErrorInvalidValue, __func__,
                      "width or format is null, or the device is %d", device);
    *width = std::size_t{1} << 28;
    return cudaSuccess;
}
