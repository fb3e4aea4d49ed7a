// cudaMalloc, cudaMemcpy and their relatives.
#include <atomic>
#include <cstdint>
#include <cstring>

#include "cuda_on_cpu/kernel_api.h"
#include "cuda_runtime_api.h"
#include "errors.hpp"
#include "memory.hpp"
#include "observer.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {
namespace {

double gibibytes(std::size_t bytes) {
    return static_cast<double>(bytes) / (1 << 30);
}

cudaError_t allocate_for(const char* function, void** pointer, std::size_t bytes, cudaMemoryType type) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return note(lost);
    if (pointer == nullptr) return refuse(cudaErrorInvalidValue, function, "the pointer to set is null");
    if (const cudaError_t error = check_no_capture(function, Forbidden::by_strict_captures);
        error != cudaSuccess) {
        return error;
    }
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    *pointer = allocate(bytes, type);
    if (*pointer == nullptr) {
        if (bytes <= free_bytes()) {
            return refuse(
                cudaErrorMemoryAllocation, function,
                "%zu bytes: the system gives no more pages to this program, which has %zu allocations", bytes,
                live_allocations().size());
        }
        return refuse(cudaErrorMemoryAllocation, function,
                      "%zu bytes (%.3g GiB) do not fit: of this machine's %.3g GiB, %.3g GiB are free", bytes,
                      gibibytes(bytes), gibibytes(total_bytes()), gibibytes(free_bytes()));
    }
    return cudaSuccess;
}

cudaError_t release_for(const char* function, void* pointer, cudaMemoryType type) {
    if (pointer == nullptr) return cudaSuccess;
    return note(release(pointer, type, function));
}

// One side of a copy of `height` rows. On a GPU a pointer said to be of the device must be one, and the rows must lie
// inside its allocation; host memory that CUDA knows nothing of cannot be checked.
struct Side {
    const char* name;
    const void* pointer;
    std::size_t pitch;
    bool on_device;
};

cudaError_t check_side(const char* function, const Side& side, std::size_t width, std::size_t height) {
    if (side.pointer == nullptr) return refuse(cudaErrorInvalidValue, function, "%s is null", side.name);
    const std::size_t extent = (height - 1) * side.pitch + width;
    const auto allocation = find_allocation(side.pointer);
    if (!allocation && !side.on_device) return cudaSuccess;
    if (!device_accessible(side.pointer, extent)) {
        const std::string where = describe_address(side.pointer);
        return refuse(cudaErrorInvalidValue, function, "%s = %p, %zu bytes: %s%s", side.name, side.pointer,
                      extent, allocation ? "not inside one live allocation; it starts " : "not device memory",
                      where.c_str());
    }
    return cudaSuccess;
}

// A copy "to the device" does not go to host memory, even if it is registered.
cudaError_t check_direction(const char* function, const Side& side) {
    const auto allocation = find_allocation(side.pointer);
    if (side.on_device && allocation && allocation->type == cudaMemoryTypeHost &&
        allocation->mapping == nullptr) {
        return refuse(cudaErrorInvalidValue, function, "%s = %p is host memory", side.name, side.pointer);
    }
    return cudaSuccess;
}

cudaError_t copy(const char* function, void* to, std::size_t to_pitch, const void* from,
                 std::size_t from_pitch, std::size_t width, std::size_t height, cudaMemcpyKind kind,
                 cudaStream_t stream) {
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
        return refuse(cudaErrorInvalidMemcpyDirection, function, "kind %d", static_cast<int>(kind));
    }
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return note(lost);
    if (width == 0 || height == 0) return cudaSuccess;
    if (to_pitch < width || from_pitch < width) {
        return refuse(cudaErrorInvalidPitchValue, function, "pitches %zu and %zu for rows of %zu bytes",
                      to_pitch, from_pitch, width);
    }
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    for (const Side& side :
         {Side{"destination", to, to_pitch, to_device}, Side{"source", from, from_pitch, from_device}}) {
        if (const cudaError_t error = check_side(function, side, width, height); error != cudaSuccess)
            return error;
        if (const cudaError_t error = check_direction(function, side); error != cudaSuccess) return error;
    }
    return submit(stream, function, [=] {
        for (std::size_t row = 0; row < height; ++row) {
            std::memmove(static_cast<char*>(to) + row * to_pitch,
                         static_cast<const char*>(from) + row * from_pitch, width);
            if (memory_observer != nullptr)
                memory_observer->memory_written(static_cast<char*>(to) + row * to_pitch, width);
        }
        return cudaSuccess;
    });
}

cudaError_t set(const char* function, void* pointer, std::size_t pitch, int value, std::size_t width,
                std::size_t height, cudaStream_t stream) {
    if (const cudaError_t lost = lost_context(); lost != cudaSuccess) return note(lost);
    if (width == 0 || height == 0) return cudaSuccess;
    if (pitch < width)
        return refuse(cudaErrorInvalidPitchValue, function, "pitch %zu for rows of %zu bytes", pitch, width);
    if (const cudaError_t error = check_side(function, {"destination", pointer, pitch, true}, width, height);
        error != cudaSuccess) {
        return error;
    }
    return submit(stream, function, [=] {
        for (std::size_t row = 0; row < height; ++row) {
            std::memset(static_cast<char*>(pointer) + row * pitch, value, width);
            if (memory_observer != nullptr)
                memory_observer->memory_written(static_cast<char*>(pointer) + row * pitch, width);
        }
        return cudaSuccess;
    });
}

cudaError_t check_symbol(const char* function, std::size_t size, std::size_t bytes, std::size_t offset) {
    if (offset <= size && bytes <= size - offset) return cudaSuccess;
    return refuse(cudaErrorInvalidValue, function, "bytes %zu to %zu of a symbol of %zu bytes", offset,
                  offset + bytes, size);
}

}  // namespace

cudaError_t copy_to_symbol(void* symbol, std::size_t size, const void* from, std::size_t bytes,
                           std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
    static constexpr const char* kFunction = "cudaMemcpyToSymbol";
    if (const cudaError_t error = check_symbol(kFunction, size, bytes, offset); error != cudaSuccess)
        return error;
    return copy(kFunction, static_cast<char*>(symbol) + offset, bytes, from, bytes, bytes, 1, kind, stream);
}

cudaError_t copy_from_symbol(void* to, const void* symbol, std::size_t size, std::size_t bytes,
                             std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
    static constexpr const char* kFunction = "cudaMemcpyFromSymbol";
    if (const cudaError_t error = check_symbol(kFunction, size, bytes, offset); error != cudaSuccess)
        return error;
    return copy(kFunction, to, bytes, static_cast<const char*>(symbol) + offset, bytes, bytes, 1, kind,
                stream);
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

// The device's pool of memory that cudaMallocAsync takes from. Freed memory is given back at once, so no threshold changes
// anything; it is kept for programs that read it.
struct CUmemPool_st {
    std::atomic<std::uint64_t> release_threshold = 0;
};

namespace {

CUmemPool_st default_pool;

cudaError_t check_pool(const char* function, cudaMemPool_t pool, cudaMemPoolAttr attribute,
                       const void* value) {
    if (pool != &default_pool)
        return refuse(cudaErrorInvalidValue, function, "pool %p does not exist", static_cast<void*>(pool));
    if (value == nullptr) return refuse(cudaErrorInvalidValue, function, "value is null");
    if (attribute == cudaMemPoolAttrReleaseThreshold) return cudaSuccess;
    return refuse(cudaErrorNotSupported, function, "attribute %d; there is the release threshold alone",
                  static_cast<int>(attribute));
}

// All memory is the host's here, so nothing moves; what a GPU would refuse is refused.
cudaError_t check_prefetch(const char* function, const void* pointer, std::size_t bytes,
                           cudaMemLocation location, unsigned flags) {
    if (flags != 0) return refuse(cudaErrorInvalidValue, function, "flags %u; expected 0", flags);
    if (location.type < cudaMemLocationTypeDevice || location.type > cudaMemLocationTypeHostNumaCurrent)
        return refuse(cudaErrorInvalidValue, function, "location of type %d",
                      static_cast<int>(location.type));
    if (location.type == cudaMemLocationTypeDevice && location.id != 0)
        return refuse(cudaErrorInvalidDevice, function, "device %d", location.id);
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->type != cudaMemoryTypeManaged)
        return refuse(cudaErrorInvalidValue, function, "pointer %p is not managed memory", pointer);
    if (bytes == 0 || !device_accessible(pointer, bytes)) {
        return refuse(cudaErrorInvalidValue, function,
                      "%zu bytes from %p; expected 1 or more, inside %zu bytes", bytes, pointer,
                      allocation->size);
    }
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
    return allocate_for(__func__, pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
    static constexpr std::size_t kPitch = 512;
    if (pitch == nullptr) return refuse(cudaErrorInvalidValue, __func__, "pitch is null");
    *pitch = (width + kPitch - 1) / kPitch * kPitch;
    return allocate_for(__func__, pointer, *pitch * height, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
    return allocate_for(__func__, pointer, bytes, cudaMemoryTypeManaged);
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture != nullptr)
        return refuse(cudaErrorNotSupported, __func__, "allocation in a stream that captures");
    return allocate_for(__func__, pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaFree(void* pointer) {
    return release_for(__func__, pointer, cudaMemoryTypeDevice);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture != nullptr)
        return refuse(cudaErrorNotSupported, __func__, "release in a stream that captures");
    return release_for(__func__, pointer, cudaMemoryTypeDevice);
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes, unsigned) {
    return allocate_for(__func__, pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
    return allocate_for(__func__, pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaFreeHost(void* pointer) {
    return release_for(__func__, pointer, cudaMemoryTypeHost);
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
    if (pointer == nullptr || bytes == 0) {
        return refuse(cudaErrorInvalidValue, __func__, "pointer %p, %zu bytes", pointer, bytes);
    }
    if (find_allocation(pointer)) {
        return refuse(cudaErrorHostMemoryAlreadyRegistered, __func__, "pointer %p is known already", pointer);
    }
    register_host(pointer, bytes);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
    if (unregister_host(pointer)) return cudaSuccess;
    return refuse(cudaErrorHostMemoryNotRegistered, __func__, "pointer %p", pointer);
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned) {
    if (device_pointer == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "the pointer to set is null");
    const auto allocation = find_allocation(host_pointer);
    if (!allocation || allocation->freed || allocation->type == cudaMemoryTypeDevice) {
        return refuse(cudaErrorInvalidValue, __func__, "pointer %p is not pinned", host_pointer);
    }
    *device_pointer = host_pointer;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    if (attributes == nullptr) return refuse(cudaErrorInvalidValue, __func__, "attributes is null");
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->freed) {
        *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, const_cast<void*>(pointer)};
        return cudaSuccess;
    }
    auto* address = const_cast<void*>(pointer);
    *attributes = {allocation->type, 0, address,
                   allocation->type == cudaMemoryTypeDevice ? nullptr : address};
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return copy(__func__, to, bytes, from, bytes, bytes, 1, kind, nullptr);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return copy(__func__, to, bytes, from, bytes, bytes, 1, kind, stream);
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
    return copy(__func__, to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
    return copy(__func__, to, to_pitch, from, from_pitch, width, height, kind, stream);
}

cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
    return set(__func__, pointer, bytes, value, bytes, 1, nullptr);
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t stream) {
    return set(__func__, pointer, bytes, value, bytes, 1, stream);
}

cudaError_t cudaMemset2D(void* pointer, std::size_t pitch, int value, std::size_t width, std::size_t height) {
    return set(__func__, pointer, pitch, value, width, height, nullptr);
}

cudaError_t cudaMemset2DAsync(void* pointer, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
    return set(__func__, pointer, pitch, value, width, height, stream);
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture != nullptr)
        return refuse(cudaErrorNotSupported, __func__, "prefetch in a stream that captures");
    if (const cudaError_t error = check_prefetch(__func__, pointer, bytes, location, flags);
        error != cudaSuccess) {
        return error;
    }
    return submit(stream, __func__, [] { return cudaSuccess; });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    if (pool == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the pool to set is null");
    if (device != 0) return refuse(cudaErrorInvalidDevice, __func__, "device %d", device);
    *pool = &default_pool;
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    if (const cudaError_t error = check_pool(__func__, pool, attribute, value); error != cudaSuccess)
        return error;
    *static_cast<std::uint64_t*>(value) = pool->release_threshold;
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    if (const cudaError_t error = check_pool(__func__, pool, attribute, value); error != cudaSuccess)
        return error;
    pool->release_threshold = *static_cast<const std::uint64_t*>(value);
    return cudaSuccess;
}
