#include "arrays.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "copies.hpp"
#include "cuda_runtime_api.h"
#include "devices.hpp"
#include "errors.hpp"
#include "memory.hpp"
#include "observer.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {
namespace {

std::mutex mutex;
// Never destroyed, because static objects of the program may free arrays after main().
std::set<cudaArray_const_t>& arrays() {
    static auto& all = *new std::set<cudaArray_const_t>;
    return all;
}
std::set<cudaMipmappedArray_const_t>& mipmapped_arrays() {
    static auto& all = *new std::set<cudaMipmappedArray_const_t>;
    return all;
}

// --- Limits ---------------------------------------------------------------------------

struct ExtentLimits {
    std::size_t width, height, depth;
};

ExtentLimits limits_of(const cudaExtent& extent, unsigned flags) {
    const bool layered = (flags & cudaArrayLayered) != 0;
    if ((flags & cudaArrayCubemap) != 0) return {32768, 32768, layered ? 2046U : 6U};
    if (layered) return {32768, 32768, 2048};
    if (extent.depth > 0) return {16384, 16384, 16384};
    return {131072, 65536, 0};
}

cudaError_t check_format(const char* function, const cudaChannelFormatDesc* format) {
    if (format == nullptr) return refuse(cudaErrorInvalidValue, function, "the format is null");
    if (element_bytes(*format) != 0) return cudaSuccess;
    return refuse(cudaErrorInvalidChannelDescriptor, function,
                  "the format has channels of %d, %d, %d, %d bits, kind %d; expected 1, 2 or 4 channels of "
                  "8, 16 or 32 bits each, and floats of 16 or 32",
                  format->x, format->y, format->z, format->w, static_cast<int>(format->f));
}

cudaError_t check_extent(const char* function, const cudaExtent& e, unsigned flags) {
    const bool layered = (flags & cudaArrayLayered) != 0;
    const ExtentLimits most = limits_of(e, flags);
    if (e.width == 0) return refuse(cudaErrorInvalidValue, function, "width is 0; expected 1 or more");
    if (e.width > most.width || e.height > most.height || e.depth > most.depth) {
        return refuse(cudaErrorInvalidValue, function,
                      "extent is (%zu, %zu, %zu); expected at most (%zu, %zu, %zu)", e.width, e.height,
                      e.depth, most.width, most.height, most.depth);
    }
    if ((flags & cudaArrayCubemap) != 0) {
        if (e.width != e.height || (layered ? e.depth == 0 || e.depth % 6 != 0 : e.depth != 6)) {
            return refuse(cudaErrorInvalidValue, function,
                          "extent is (%zu, %zu, %zu); expected a cubemap's: width and height the same, and a "
                          "depth of %s",
                          e.width, e.height, e.depth, layered ? "6 times the layers" : "6");
        }
    } else if (layered && e.depth == 0) {
        return refuse(cudaErrorInvalidValue, function, "depth is 0; expected the number of layers");
    } else if (!layered && e.depth > 0 && e.height == 0) {
        return refuse(cudaErrorInvalidValue, function, "height is 0 and depth %zu; expected a height",
                      e.depth);
    }
    return cudaSuccess;
}

cudaError_t check_flags(const char* function, const cudaExtent& extent, unsigned flags) {
    constexpr unsigned kKnown = cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayCubemap |
                                cudaArrayTextureGather | cudaArrayColorAttachment;
    if ((flags & ~kKnown) != 0) {
        const bool exists = (flags & ~(kKnown | cudaArraySparse | cudaArrayDeferredMapping)) == 0;
        return refuse(exists ? cudaErrorNotSupported : cudaErrorInvalidValue, function, "flags are 0x%x%s",
                      flags, exists ? "; sparse arrays do not exist here" : "");
    }
    if ((flags & cudaArrayTextureGather) != 0 && (extent.height == 0 || extent.depth != 0)) {
        return refuse(cudaErrorInvalidValue, function,
                      "cudaArrayTextureGather is for two-dimensional arrays; extent is (%zu, %zu, %zu)",
                      extent.width, extent.height, extent.depth);
    }
    return cudaSuccess;
}

// --- Making and freeing --------------------------------------------------------------------------

cudaArray* new_array(const cudaChannelFormatDesc& format, const cudaExtent& extent, unsigned flags) {
    auto* array = new cudaArray{format, extent, flags, element_bytes(format), nullptr};
    array->data = static_cast<char*>(allocate(array->bytes(), cudaMemoryTypeDevice));
    if (array->data == nullptr) {
        delete array;
        return nullptr;
    }
    const std::scoped_lock lock(mutex);
    arrays().insert(array);
    return array;
}

void delete_array(cudaArray* array, const char* function) {
    {
        const std::scoped_lock lock(mutex);
        arrays().erase(array);
    }
    release(array->data, cudaMemoryTypeDevice, function);
    delete array;
}

cudaError_t check_new(const char* function, const cudaChannelFormatDesc* format, const cudaExtent& extent,
                      unsigned flags) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (const cudaError_t error = check_no_capture(function, Forbidden::by_strict_captures);
        error != cudaSuccess) {
        return error;
    }
    if (const cudaError_t error = check_format(function, format); error != cudaSuccess) return error;
    if (const cudaError_t error = check_flags(function, extent, flags); error != cudaSuccess) return error;
    return check_extent(function, extent, flags);
}

cudaError_t make_array(const char* function, cudaArray_t* array, const cudaChannelFormatDesc* format,
                       const cudaExtent& extent, unsigned flags) {
    if (array == nullptr) return refuse(cudaErrorInvalidValue, function, "the array to set is null");
    if (const cudaError_t error = check_new(function, format, extent, flags); error != cudaSuccess)
        return error;
    *array = new_array(*format, extent, flags);
    if (*array == nullptr)
        return refuse(cudaErrorMemoryAllocation, function,
                      "no memory for an array of (%zu, %zu, %zu) elements", extent.width, extent.height,
                      extent.depth);
    return cudaSuccess;
}

cudaError_t check_array(const char* function, cudaArray_const_t array, const char* name = "array") {
    if (is_live_array(array)) return cudaSuccess;
    return refuse(cudaErrorInvalidResourceHandle, function, "%s %p is no array that exists", name,
                  static_cast<const void*>(array));
}

unsigned longest_mipmap(const cudaExtent& extent, unsigned flags) {
    const bool volume = (flags & (cudaArrayLayered | cudaArrayCubemap)) == 0;
    std::size_t longest = std::max({extent.width, extent.height, volume ? extent.depth : 0});
    unsigned levels = 0;
    for (; longest > 0; longest /= 2)
        ++levels;
    return levels;
}

cudaExtent level_extent(const cudaExtent& extent, unsigned flags, unsigned level) {
    const auto half = [level](std::size_t size) {
        return size == 0 ? 0 : std::max<std::size_t>(1, size >> level);
    };
    const bool volume = (flags & (cudaArrayLayered | cudaArrayCubemap)) == 0;
    return {half(extent.width), half(extent.height), volume ? half(extent.depth) : extent.depth};
}

// --- Copies --------------------------------------------------------------------------------------

// The first byte of a box of rows and the distances from one row, and one slice, to the next.
struct Box {
    const char* name;  // of the argument
    char* first;
    std::size_t pitch;
    std::size_t slice_bytes;
    bool in_array;
};

struct Size {
    std::size_t row_bytes;
    std::size_t rows;
    std::size_t slices;
};

cudaError_t copy_box(const char* function, const Box& to, const Box& from, const Size& size,
                     cudaMemcpyKind kind, cudaStream_t stream) {
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
        return refuse(cudaErrorInvalidMemcpyDirection, function, "kind is %d", static_cast<int>(kind));
    }
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyDefault && ((to.in_array && !to_device) || (from.in_array && !from_device))) {
        return refuse(cudaErrorInvalidMemcpyDirection, function,
                      "kind is %d, and the %s is an array, which is on the device", static_cast<int>(kind),
                      to.in_array && !to_device ? to.name : from.name);
    }
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (size.row_bytes == 0 || size.rows == 0 || size.slices == 0) return cudaSuccess;
    for (const auto& [box, on_device] : {std::pair(to, to_device), std::pair(from, from_device)}) {
        if (box.in_array) continue;
        if (size.rows > 1 && box.pitch < size.row_bytes) {
            return refuse(cudaErrorInvalidPitchValue, function,
                          "the pitch of the %s is %zu for rows of %zu bytes", box.name, box.pitch,
                          size.row_bytes);
        }
        const std::size_t bytes =
            bytes_of({size.row_bytes, box.pitch, size.rows, box.slice_bytes, size.slices});
        if (const cudaError_t error = check_copied(function, box.name, box.first, on_device, bytes);
            error != cudaSuccess) {
            return error;
        }
    }
    return submit(stream, function, [=] {
        for (std::size_t slice = 0; slice < size.slices; ++slice) {
            for (std::size_t row = 0; row < size.rows; ++row) {
                char* const written = to.first + slice * to.slice_bytes + row * to.pitch;
                std::memmove(written, from.first + slice * from.slice_bytes + row * from.pitch,
                             size.row_bytes);
                if (memory_observer != nullptr) memory_observer->memory_written(written, size.row_bytes);
            }
        }
        return cudaSuccess;
    });
}

// A box in an array; x and the row's length are in bytes.
cudaError_t box_in_array(const char* function, const char* name, cudaArray_const_t array, const cudaPos& at,
                         const Size& size, Box* box) {
    if (const cudaError_t error = check_array(function, array, name); error != cudaSuccess) return error;
    if (at.x % array->element_bytes != 0 || size.row_bytes % array->element_bytes != 0) {
        return refuse(cudaErrorInvalidValue, function,
                      "%s: bytes %zu to %zu of a row; expected multiples of the element's %zu bytes", name,
                      at.x, at.x + size.row_bytes, array->element_bytes);
    }
    if (!is_inside(at.x, size.row_bytes, array->row_bytes()) || !is_inside(at.y, size.rows, array->rows()) ||
        !is_inside(at.z, size.slices, array->slices())) {
        return refuse(cudaErrorInvalidValue, function,
                      "%s: %zu bytes x %zu rows x %zu slices from (%zu, %zu, %zu) are not inside the array's "
                      "%zu x %zu x %zu",
                      name, size.row_bytes, size.rows, size.slices, at.x, at.y, at.z, array->row_bytes(),
                      array->rows(), array->slices());
    }
    *box = {name, array->data + at.z * array->slice_bytes() + at.y * array->row_bytes() + at.x,
            array->row_bytes(), array->slice_bytes(), true};
    return cudaSuccess;
}

cudaError_t copy_2d_to_array(const char* function, cudaArray_t to, std::size_t x, std::size_t y,
                             const void* from, std::size_t pitch, std::size_t width, std::size_t height,
                             cudaMemcpyKind kind, cudaStream_t stream) {
    const Size size{width, height, 1};
    Box target;
    if (const cudaError_t error = box_in_array(function, "destination", to, {x, y, 0}, size, &target);
        error != cudaSuccess) {
        return error;
    }
    char* first = static_cast<char*>(const_cast<void*>(from));
    return copy_box(function, target, {"source", first, pitch, 0, false}, size, kind, stream);
}

cudaError_t copy_2d_from_array(const char* function, void* to, std::size_t pitch, cudaArray_const_t from,
                               std::size_t x, std::size_t y, std::size_t width, std::size_t height,
                               cudaMemcpyKind kind, cudaStream_t stream) {
    const Size size{width, height, 1};
    Box source;
    if (const cudaError_t error = box_in_array(function, "source", from, {x, y, 0}, size, &source);
        error != cudaSuccess) {
        return error;
    }
    return copy_box(function, {"destination", static_cast<char*>(to), pitch, 0, false}, source, size, kind,
                    stream);
}

// Bytes of consecutive rows: an array has no gaps between them, so they are one long row.
cudaError_t check_run(const char* function, cudaArray_const_t array, std::size_t x, std::size_t y,
                      std::size_t bytes) {
    if (const cudaError_t error = check_array(function, array); error != cudaSuccess) return error;
    const std::size_t begin = y * array->row_bytes() + x;
    if (x < std::max<std::size_t>(1, array->row_bytes()) && begin <= array->slice_bytes() &&
        bytes <= array->slice_bytes() - begin) {
        return cudaSuccess;
    }
    return refuse(cudaErrorInvalidValue, function,
                  "%zu bytes from byte %zu of row %zu are not inside the array of %zu rows of %zu bytes",
                  bytes, x, y, array->rows(), array->row_bytes());
}

cudaError_t copy_run_to_array(const char* function, cudaArray_t to, std::size_t x, std::size_t y,
                              const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    if (const cudaError_t error = check_run(function, to, x, y, bytes); error != cudaSuccess) return error;
    char* first = static_cast<char*>(const_cast<void*>(from));
    return copy_box(function, {"destination", to->data + y * to->row_bytes() + x, 0, 0, true},
                    {"source", first, 0, 0, false}, {bytes, 1, 1}, kind, stream);
}

cudaError_t copy_run_from_array(const char* function, void* to, cudaArray_const_t from, std::size_t x,
                                std::size_t y, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    if (const cudaError_t error = check_run(function, from, x, y, bytes); error != cudaSuccess) return error;
    return copy_box(function, {"destination", static_cast<char*>(to), 0, 0, false},
                    {"source", from->data + y * from->row_bytes() + x, 0, 0, true}, {bytes, 1, 1}, kind,
                    stream);
}

// One side of cudaMemcpy3D: an array or a pitched pointer, and exactly one of them.
cudaError_t box_of(const char* function, const char* name, cudaArray_const_t array,
                   const cudaPitchedPtr& pointer, const cudaPos& at, std::size_t element, const Size& size,
                   Box* box) {
    if ((array != nullptr) == (pointer.ptr != nullptr)) {
        return refuse(cudaErrorInvalidValue, function, "the %s is %s; expected one of the two", name,
                      array != nullptr ? "both an array and a pointer" : "neither an array nor a pointer");
    }
    if (array != nullptr)
        return box_in_array(function, name, array, {product(at.x, element), at.y, at.z}, size, box);
    if (size.slices > 1 && pointer.ysize < size.rows) {
        return refuse(cudaErrorInvalidValue, function,
                      "the ysize of the %s is %zu; expected at least the %zu rows that are copied", name,
                      pointer.ysize, size.rows);
    }
    const std::size_t slice_bytes = product(pointer.pitch, pointer.ysize);
    *box = {name, static_cast<char*>(pointer.ptr) + at.z * slice_bytes + at.y * pointer.pitch + at.x,
            pointer.pitch, slice_bytes, false};
    return cudaSuccess;
}

cudaError_t copy_3d(const char* function, const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
    if (parameters == nullptr) return refuse(cudaErrorInvalidValue, function, "the parameters are null");
    const cudaMemcpy3DParms& p = *parameters;
    std::size_t element = 1;  // the unit of the width
    for (const auto& [name, array] :
         {std::pair("source", p.srcArray), std::pair("destination", p.dstArray)}) {
        if (array == nullptr) continue;
        if (const cudaError_t error = check_array(function, array, name); error != cudaSuccess) return error;
        if (p.srcArray != nullptr && p.dstArray != nullptr && element != 1 && element != array->element_bytes)
            return refuse(cudaErrorInvalidValue, function,
                          "the arrays' elements are of %zu and %zu bytes; expected the same size", element,
                          array->element_bytes);
        element = array->element_bytes;
    }
    const Size size{product(p.extent.width, element), p.extent.height, p.extent.depth};
    if (size.row_bytes == 0 || size.rows == 0 || size.slices == 0) return cudaSuccess;
    Box to;
    Box from;
    if (const cudaError_t error =
            box_of(function, "destination", p.dstArray, p.dstPtr, p.dstPos, element, size, &to);
        error != cudaSuccess) {
        return error;
    }
    if (const cudaError_t error =
            box_of(function, "source", p.srcArray, p.srcPtr, p.srcPos, element, size, &from);
        error != cudaSuccess) {
        return error;
    }
    return copy_box(function, to, from, size, p.kind, stream);
}

cudaError_t copy_3d_peer(const char* function, const cudaMemcpy3DPeerParms* parameters, cudaStream_t stream) {
    if (parameters == nullptr) return refuse(cudaErrorInvalidValue, function, "the parameters are null");
    const cudaMemcpy3DPeerParms& p = *parameters;
    for (const int device : {p.srcDevice, p.dstDevice}) {
        if (const cudaError_t error = expect_device(function, device); error != cudaSuccess) return error;
    }
    const cudaMemcpy3DParms same{p.srcArray, p.srcPos, p.srcPtr, p.dstArray,
                                 p.dstPos,   p.dstPtr, p.extent, cudaMemcpyDeviceToDevice};
    return copy_3d(function, &same, stream);
}

cudaError_t set_3d(const char* function, const cudaPitchedPtr& pitched, int value, const cudaExtent& extent,
                   cudaStream_t stream) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return set_last_error(lost);
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
    if (pitched.pitch < extent.width)
        return refuse(cudaErrorInvalidPitchValue, function, "the pitch is %zu for rows of %zu bytes",
                      pitched.pitch, extent.width);
    if (extent.depth > 1 && pitched.ysize < extent.height) {
        return refuse(cudaErrorInvalidValue, function, "ysize is %zu; expected at least the height, %zu",
                      pitched.ysize, extent.height);
    }
    const std::size_t slice_bytes = product(pitched.pitch, pitched.ysize);
    const std::size_t bytes =
        bytes_of({extent.width, pitched.pitch, extent.height, slice_bytes, extent.depth});
    if (const cudaError_t error = check_copied(function, "pitched pointer", pitched.ptr, true, bytes);
        error != cudaSuccess) {
        return error;
    }
    return submit(stream, function, [=] {
        for (std::size_t slice = 0; slice < extent.depth; ++slice) {
            for (std::size_t row = 0; row < extent.height; ++row) {
                char* const first =
                    static_cast<char*>(pitched.ptr) + slice * slice_bytes + row * pitched.pitch;
                std::memset(first, value, extent.width);
                if (memory_observer != nullptr) memory_observer->memory_written(first, extent.width);
            }
        }
        return cudaSuccess;
    });
}

}  // namespace

std::size_t element_bytes(const cudaChannelFormatDesc& format) {
    const int bits[] = {format.x, format.y, format.z, format.w};
    int channels = 0;
    while (channels < 4 && bits[channels] != 0)
        ++channels;
    if (channels == 0 || channels == 3) return 0;
    for (int i = 0; i < 4; ++i) {
        if (bits[i] != (i < channels ? bits[0] : 0)) return 0;
    }
    const bool is_float = format.f == cudaChannelFormatKindFloat;
    if (bits[0] != 32 && bits[0] != 16 && (is_float || bits[0] != 8)) return 0;
    if (format.f == cudaChannelFormatKindNone) return 0;
    return static_cast<std::size_t>(channels * bits[0] / 8);
}

bool is_live_array(cudaArray_const_t array) {
    const std::scoped_lock lock(mutex);
    return arrays().contains(array);
}

bool is_live_array(cudaMipmappedArray_const_t array) {
    const std::scoped_lock lock(mutex);
    return mipmapped_arrays().contains(array);
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

// --- Arrays --------------------------------------------------------------------------------------

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
    return {x, y, z, w, f};
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, std::size_t width,
                            std::size_t height, unsigned flags) {
    if ((flags & (cudaArrayLayered | cudaArrayCubemap)) != 0)
        return refuse(cudaErrorInvalidValue, __func__,
                      "flags are 0x%x: layered arrays and cubemaps are made by cudaMalloc3DArray", flags);
    return make_array(__func__, array, format, {width, height, 0}, flags);
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                              unsigned flags) {
    return make_array(__func__, array, format, extent, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
    if (array == nullptr) return cudaSuccess;
    if (const cudaError_t error = check_array(__func__, array); error != cudaSuccess) return error;
    delete_array(array, __func__);
    return cudaSuccess;
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
    if (const cudaError_t error = check_array(__func__, array); error != cudaSuccess) return error;
    if (format != nullptr) *format = array->format;
    if (extent != nullptr) *extent = array->extent;
    if (flags != nullptr) *flags = array->flags;
    return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
    if (format == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the format to set is null");
    if (const cudaError_t error = check_array(__func__, array); error != cudaSuccess) return error;
    *format = array->format;
    return cudaSuccess;
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* format,
                                     cudaExtent extent, unsigned levels, unsigned flags) {
    if (array == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the array to set is null");
    if (const cudaError_t error = check_new(__func__, format, extent, flags); error != cudaSuccess)
        return error;
    // As on a GPU, an out-of-range number of levels is clamped.
    levels = std::clamp(levels, 1U, longest_mipmap(extent, flags));
    auto* made = new cudaMipmappedArray;
    for (unsigned level = 0; level < levels; ++level) {
        cudaArray* one = new_array(*format, level_extent(extent, flags, level), flags);
        if (one == nullptr) {
            for (cudaArray* before : made->levels)
                delete_array(before, __func__);
            delete made;
            return refuse(cudaErrorMemoryAllocation, __func__, "no memory for level %u", level);
        }
        made->levels.push_back(one);
    }
    const std::scoped_lock lock(mutex);
    mipmapped_arrays().insert(made);
    *array = made;
    return cudaSuccess;
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level_array, cudaMipmappedArray_const_t array,
                                       unsigned level) {
    if (level_array == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the array to set is null");
    if (!is_live_array(array))
        return refuse(cudaErrorInvalidResourceHandle, __func__, "array %p is no mipmapped array that exists",
                      static_cast<const void*>(array));
    if (level >= array->levels.size())
        return refuse(cudaErrorInvalidValue, __func__, "level is %u; the array has %zu", level,
                      array->levels.size());
    *level_array = array->levels[level];
    return cudaSuccess;
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
    if (array == nullptr) return cudaSuccess;
    if (!is_live_array(array))
        return refuse(cudaErrorInvalidResourceHandle, __func__, "array %p is no mipmapped array that exists",
                      static_cast<void*>(array));
    {
        const std::scoped_lock lock(mutex);
        mipmapped_arrays().erase(array);
    }
    for (cudaArray* level : array->levels)
        delete_array(level, __func__);
    delete array;
    return cudaSuccess;
}

// --- Copies --------------------------------------------------------------------------------------

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                std::size_t pitch, std::size_t width, std::size_t height,
                                cudaMemcpyKind kind) {
    return copy_2d_to_array(__func__, to, x, y, from, pitch, width, height, kind, nullptr);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                     std::size_t pitch, std::size_t width, std::size_t height,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_2d_to_array(__func__, to, x, y, from, pitch, width, height, kind, stream);
}

cudaError_t cudaMemcpy2DFromArray(void* to, std::size_t pitch, cudaArray_const_t from, std::size_t x,
                                  std::size_t y, std::size_t width, std::size_t height, cudaMemcpyKind kind) {
    return copy_2d_from_array(__func__, to, pitch, from, x, y, width, height, kind, nullptr);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* to, std::size_t pitch, cudaArray_const_t from, std::size_t x,
                                       std::size_t y, std::size_t width, std::size_t height,
                                       cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_2d_from_array(__func__, to, pitch, from, x, y, width, height, kind, stream);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, std::size_t to_x, std::size_t to_y,
                                     cudaArray_const_t from, std::size_t from_x, std::size_t from_y,
                                     std::size_t width, std::size_t height, cudaMemcpyKind kind) {
    const Size size{width, height, 1};
    Box target;
    Box source;
    if (const cudaError_t error = box_in_array(__func__, "destination", to, {to_x, to_y, 0}, size, &target);
        error != cudaSuccess) {
        return error;
    }
    if (const cudaError_t error = box_in_array(__func__, "source", from, {from_x, from_y, 0}, size, &source);
        error != cudaSuccess) {
        return error;
    }
    return copy_box(__func__, target, source, size, kind, nullptr);
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                              std::size_t bytes, cudaMemcpyKind kind) {
    return copy_run_to_array(__func__, to, x, y, from, bytes, kind, nullptr);
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                   std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_run_to_array(__func__, to, x, y, from, bytes, kind, stream);
}

cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, std::size_t x, std::size_t y,
                                std::size_t bytes, cudaMemcpyKind kind) {
    return copy_run_from_array(__func__, to, from, x, y, bytes, kind, nullptr);
}

cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, std::size_t x, std::size_t y,
                                     std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_run_from_array(__func__, to, from, x, y, bytes, kind, stream);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
    if (pitched == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "the pitched pointer to set is null");
    void* pointer = nullptr;
    std::size_t pitch = 0;
    const cudaError_t error =
        cudaMallocPitch(&pointer, &pitch, extent.width, product(extent.height, extent.depth));
    *pitched = {pointer, pitch, extent.width, extent.height};
    return error;
}

cudaError_t cudaMemset3D(cudaPitchedPtr pitched, int value, cudaExtent extent) {
    return set_3d(__func__, pitched, value, extent, nullptr);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream) {
    return set_3d(__func__, pitched, value, extent, stream);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
    return copy_3d(__func__, parameters, nullptr);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
    return copy_3d(__func__, parameters, stream);
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* parameters) {
    return copy_3d_peer(__func__, parameters, nullptr);
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* parameters, cudaStream_t stream) {
    return copy_3d_peer(__func__, parameters, stream);
}
