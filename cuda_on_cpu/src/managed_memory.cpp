// Advice about managed memory, and memory that devices share. All memory is the host's.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "child_grids.hpp"
#include "cuda_runtime_api.h"
#include "current_device.hpp"
#include "devices.hpp"
#include "errors.hpp"
#include "memory.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {
namespace {

// The advice for one allocation of managed memory. Members are device numbers; kHost is the host.
constexpr int kHost = cudaCpuDeviceId;
constexpr int kNone = cudaInvalidDeviceId;
struct Advice {
    bool read_mostly = false;
    int preferred = kNone;
    std::set<int> accessed_by;
};

std::mutex mutex;
// Indexed by the first byte of the allocation. Never destroyed, because static objects of the
// program may use it after main().
std::map<const void*, Advice>& advice_for() {
    static auto& all = *new std::map<const void*, Advice>;
    return all;
}

cudaError_t check_managed(const char* function, const void* pointer, std::size_t bytes,
                          const void** allocation_begin) {
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->freed || allocation->type != cudaMemoryTypeManaged)
        return refuse(cudaErrorInvalidValue, function, "pointer %p is not managed memory", pointer);
    if (bytes == 0 || !device_accessible(pointer, bytes))
        return refuse(cudaErrorInvalidValue, function,
                      "%zu bytes from %p; expected 1 or more, inside %zu bytes", bytes, pointer,
                      allocation->size);
    *allocation_begin = allocation->begin;
    return cudaSuccess;
}

cudaError_t device_of(const char* function, const cudaMemLocation& location, int* device) {
    if (location.type < cudaMemLocationTypeDevice || location.type > cudaMemLocationTypeHostNumaCurrent)
        return refuse(cudaErrorInvalidValue, function, "the location is of type %d",
                      static_cast<int>(location.type));
    if (location.type == cudaMemLocationTypeDevice && (location.id < 0 || location.id >= device_count()))
        return refuse(cudaErrorInvalidValue, function, "device %d; there are %d, from 0", location.id,
                      device_count());
    *device = location.type == cudaMemLocationTypeDevice ? location.id : kHost;
    return cudaSuccess;
}

int location_type(int device) {
    return device == kNone   ? cudaMemLocationTypeInvalid
           : device == kHost ? cudaMemLocationTypeHost
                             : cudaMemLocationTypeDevice;
}

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaMemAdvise(const void* pointer, std::size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
    const void* begin = nullptr;
    if (const cudaError_t error = check_managed(__func__, pointer, bytes, &begin); error != cudaSuccess)
        return error;
    const bool needs_location = advice == cudaMemAdviseSetPreferredLocation ||
                                advice == cudaMemAdviseSetAccessedBy ||
                                advice == cudaMemAdviseUnsetAccessedBy;
    int device = kNone;
    if (needs_location) {
        if (const cudaError_t error = device_of(__func__, location, &device); error != cudaSuccess)
            return error;
    }
    const std::scoped_lock lock(mutex);
    Advice& known = advice_for()[begin];
    switch (advice) {
        case cudaMemAdviseSetReadMostly:
        case cudaMemAdviseUnsetReadMostly:
            known.read_mostly = advice == cudaMemAdviseSetReadMostly;
            return cudaSuccess;
        case cudaMemAdviseSetPreferredLocation:
        case cudaMemAdviseUnsetPreferredLocation:
            known.preferred = device;
            return cudaSuccess;
        case cudaMemAdviseSetAccessedBy:
            known.accessed_by.insert(device);
            return cudaSuccess;
        case cudaMemAdviseUnsetAccessedBy:
            known.accessed_by.erase(device);
            return cudaSuccess;
    }
    return refuse(cudaErrorInvalidValue, __func__, "advice is %d", static_cast<int>(advice));
}

cudaError_t cudaMemRangeGetAttribute(void* data, std::size_t data_bytes, cudaMemRangeAttribute attribute,
                                     const void* pointer, std::size_t bytes) {
    const void* begin = nullptr;
    if (data == nullptr || data_bytes == 0 || data_bytes % sizeof(int) != 0 ||
        (attribute != cudaMemRangeAttributeAccessedBy && data_bytes != sizeof(int)))
        return refuse(cudaErrorInvalidValue, __func__, "data is %p, of %zu bytes; expected %s", data,
                      data_bytes,
                      attribute == cudaMemRangeAttributeAccessedBy ? "a multiple of 4 bytes" : "4 bytes");
    if (const cudaError_t error = check_managed(__func__, pointer, bytes, &begin); error != cudaSuccess)
        return error;
    const std::scoped_lock lock(mutex);
    const Advice& known = advice_for()[begin];
    auto* values = static_cast<int*>(data);
    switch (attribute) {
        case cudaMemRangeAttributeReadMostly:
            *values = known.read_mostly;
            return cudaSuccess;
        case cudaMemRangeAttributePreferredLocation:
        case cudaMemRangeAttributePreferredLocationId:
            *values = known.preferred;
            return cudaSuccess;
        case cudaMemRangeAttributePreferredLocationType:
            *values = location_type(known.preferred);
            return cudaSuccess;
        case cudaMemRangeAttributeAccessedBy: {
            auto next = known.accessed_by.begin();
            for (std::size_t i = 0; i < data_bytes / sizeof(int); ++i)
                values[i] = next == known.accessed_by.end() ? kNone : *next++;
            return cudaSuccess;
        }
        case cudaMemRangeAttributeLastPrefetchLocation:
        case cudaMemRangeAttributeLastPrefetchLocationId:
            *values = kNone;  // nothing moves, so nothing was prefetched
            return cudaSuccess;
        case cudaMemRangeAttributeLastPrefetchLocationType:
            *values = cudaMemLocationTypeInvalid;
            return cudaSuccess;
    }
    return refuse(cudaErrorInvalidValue, __func__, "attribute is %d", static_cast<int>(attribute));
}

cudaError_t cudaMemRangeGetAttributes(void** data, std::size_t* data_bytes, cudaMemRangeAttribute* attributes,
                                      std::size_t count, const void* pointer, std::size_t bytes) {
    if (data == nullptr || data_bytes == nullptr || attributes == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "data, its sizes or the attributes are null");
    for (std::size_t i = 0; i < count; ++i) {
        const cudaError_t error =
            cudaMemRangeGetAttribute(data[i], data_bytes[i], attributes[i], pointer, bytes);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, std::size_t, unsigned flags) {
    const void* begin = nullptr;
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle)
        return refuse(cudaErrorInvalidValue, __func__,
                      "flags are 0x%x; expected cudaMemAttachGlobal, Host or Single", flags);
    if (const cudaError_t error = check_managed(__func__, pointer, 1, &begin); error != cudaSuccess)
        return error;
    return submit(stream, __func__, [] { return cudaSuccess; });
}

// --- Peers ---------------------------------------------------------------------------------------

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    if (flags != 0) return refuse(cudaErrorInvalidValue, __func__, "flags are %u; expected 0", flags);
    return enable_peer_access(__func__, peer);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    return disable_peer_access(__func__, peer);
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
    if (value == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the value to set is null");
    if (attribute < cudaDevP2PAttrPerformanceRank || attribute > cudaDevP2PAttrCudaArrayAccessSupported)
        return refuse(cudaErrorInvalidValue, __func__, "attribute is %d", static_cast<int>(attribute));
    if (const cudaError_t error = expect_device(__func__, device); error != cudaSuccess) return error;
    if (const cudaError_t error = expect_device(__func__, peer); error != cudaSuccess) return error;
    if (device == peer) {
        return refuse(cudaErrorInvalidDevice, __func__, "device %d is not its own peer", device);
    }
    *value = attribute == cudaDevP2PAttrPerformanceRank ? 0 : 1;
    return cudaSuccess;
}

namespace {

cudaError_t check_owner(const char* function, const char* name, const void* pointer, int device) {
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->freed || allocation->type != cudaMemoryTypeDevice ||
        allocation->device == device)
        return cudaSuccess;
    return refuse(cudaErrorInvalidValue, function, "%s %p is memory of device %d; expected device %d", name,
                  pointer, allocation->device, device);
}

cudaError_t check_peer_copy(const char* function, void* to, int to_device, const void* from,
                            int from_device) {
    if (const cudaError_t error = expect_device(function, to_device); error != cudaSuccess) return error;
    if (const cudaError_t error = expect_device(function, from_device); error != cudaSuccess) return error;
    if (const cudaError_t error = check_owner(function, "destination", to, to_device); error != cudaSuccess)
        return error;
    return check_owner(function, "source", from, from_device);
}

}  // namespace

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, std::size_t bytes) {
    if (const cudaError_t error = check_peer_copy(__func__, to, to_device, from, from_device);
        error != cudaSuccess)
        return error;
    // The copy waits for all work of both devices.
    if (!in_kernel() && several_devices()) {
        wait_for_streams_of(to_device);
        wait_for_streams_of(from_device);
    }
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream) {
    if (const cudaError_t error = check_peer_copy(__func__, to, to_device, from, from_device);
        error != cudaSuccess)
        return error;
    // As on an H200 with CUDA 13.
    std::shared_ptr<Capture> capture;
    if (const cudaError_t error = capture_of(stream, __func__, capture); error != cudaSuccess) return error;
    if (capture != nullptr) {
        invalidate_capture_of(stream);
        return refuse(cudaErrorStreamCaptureUnsupported, __func__, "the stream captures");
    }
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer) {
    if (flags == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the flags to set are null");
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->freed || allocation->type != cudaMemoryTypeHost)
        return refuse(cudaErrorInvalidValue, __func__, "pointer %p is not pinned host memory", pointer);
    *flags = cudaHostAllocPortable | cudaHostAllocMapped;
    return cudaSuccess;
}
