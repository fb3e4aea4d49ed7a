#include "memory_pools.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "cuda_runtime_api.h"
#include "current_device.hpp"
#include "devices.hpp"
#include "errors.hpp"
#include "ipc.hpp"
#include "memory.hpp"

// Freed memory is returned to the system at once, so the release threshold and trimming have no
// effect.
struct CUmemPool_st {
    std::uint64_t release_threshold = 0;
    int reuse[3] = {1, 1, 1};
    std::uint64_t used = 0;
    std::uint64_t most_used = 0;
    std::uint64_t most_reserved = 0;
    std::uint64_t limit = 0;    // bytes; 0: none
    bool is_shareable = false;  // can be exported to other processes
    bool is_imported = false;   // imported from another process
    bool is_of_host = false;    // its memory is the host's
    int device = 0;
    std::uint64_t readers = 1;  // bit d: device d may access it
};

namespace cuda_on_cpu {
namespace {

std::mutex mutex;

// The default pools of all devices. Like all objects here they are never destroyed, because static
// objects of the program may free their memory after main().
struct DefaultPools {
    DefaultPools() {
        for (int device = 0; device < kMostDevices; ++device) {
            CUmemPool_st& pool = of[static_cast<std::size_t>(device)];
            pool.device = device;
            pool.readers = std::uint64_t{1} << device;
            current[static_cast<std::size_t>(device)] = &pool;
            all.insert(&pool);
        }
    }
    std::array<CUmemPool_st, kMostDevices> of;
    std::array<cudaMemPool_t, kMostDevices> current{};
    std::set<cudaMemPool_t> all;
};
DefaultPools& default_pools() {
    static auto& all = *new DefaultPools;
    return all;
}
std::set<cudaMemPool_t>& pools() {
    return default_pools().all;
}

cudaMemPool_t& current_pool_of(int device) {
    return default_pools().current[static_cast<std::size_t>(device)];
}

struct Piece {
    cudaMemPool_t pool;
    std::size_t bytes;
};
std::map<const void*, Piece>& pieces() {
    static auto& all = *new std::map<const void*, Piece>;
    return all;
}
std::multiset<const void*>& imported_pointers() {  // memory of other processes' pools
    static auto& all = *new std::multiset<const void*>;
    return all;
}
constexpr char kPoolMark[] = "cuda_on_cpu: a memory pool";

bool exists(cudaMemPool_t pool) {
    const std::scoped_lock lock(mutex);
    return pools().contains(pool);
}

cudaError_t check_pool(const char* function, cudaMemPool_t pool) {
    if (exists(pool)) return cudaSuccess;
    return refuse(cudaErrorInvalidValue, function, "pool %p does not exist", static_cast<void*>(pool));
}

cudaError_t check_handle_type(const char* function, cudaMemAllocationHandleType type) {
    if (type == cudaMemHandleTypePosixFileDescriptor) return cudaSuccess;
    return refuse(cudaErrorNotSupported, function,
                  "the type of the handle is %d; expected cudaMemHandleTypePosixFileDescriptor",
                  static_cast<int>(type));
}

bool is_reuse(cudaMemPoolAttr attribute) {
    return attribute >= cudaMemPoolReuseFollowEventDependencies &&
           attribute <= cudaMemPoolReuseAllowInternalDependencies;
}

// Does nothing if the memory is not from a pool.
void note_pool_release(const void* pointer) {
    const std::scoped_lock lock(mutex);
    const auto found = pieces().find(pointer);
    if (found == pieces().end()) return;
    const Piece piece = found->second;
    pieces().erase(found);
    piece.pool->used -= piece.bytes;
    const bool destroyed = !pools().contains(piece.pool);
    if (destroyed && piece.pool->used == 0) delete piece.pool;
}

// False: the memory is not from another process's pool.
bool release_imported(void* pointer) {
    {
        const std::scoped_lock lock(mutex);
        const auto found = imported_pointers().find(pointer);
        if (found == imported_pointers().end()) return false;
        imported_pointers().erase(found);
    }
    return close_memory(pointer);
}

}  // namespace

void note_pool_allocation(cudaMemPool_t pool, const void* pointer, std::size_t bytes) {
    pool_memory_released = note_pool_release;
    std::uint64_t readers = 0;
    bool is_of_host = false;
    {
        const std::scoped_lock lock(mutex);
        if (pool == nullptr) pool = current_pool_of(current_device());
        readers = pool->readers;
        is_of_host = pool->is_of_host;
    }
    if (is_of_host) open_to_host(pointer);
    if (several_devices()) set_readers(pointer, readers);
    const std::scoped_lock lock(mutex);
    pieces()[pointer] = {pool, bytes};
    pool->used += bytes;
    pool->most_used = std::max(pool->most_used, pool->used);
    pool->most_reserved = std::max(pool->most_reserved, pool->used);
}

cudaError_t release_any(void* pointer, cudaMemoryType type, const char* function) {
    return release_imported(pointer) ? cudaSuccess : release(pointer, type, function);
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    if (pool == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the pool to set is null");
    if (const cudaError_t error = expect_device(__func__, device); error != cudaSuccess) return error;
    *pool = &default_pools().of[static_cast<std::size_t>(device)];
    return cudaSuccess;
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    if (const cudaError_t error = expect_device(__func__, device); error != cudaSuccess) return error;
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    const std::scoped_lock lock(mutex);
    current_pool_of(device) = pool;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    if (pool == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the pool to set is null");
    if (const cudaError_t error = expect_device(__func__, device); error != cudaSuccess) return error;
    const std::scoped_lock lock(mutex);
    *pool = current_pool_of(device);
    return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    if (pool == nullptr || properties == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "the pool to set or the properties are null");
    if (properties->allocType != cudaMemAllocationTypePinned)
        return refuse(cudaErrorInvalidValue, __func__,
                      "allocType is %d; expected cudaMemAllocationTypePinned",
                      static_cast<int>(properties->allocType));
    if (properties->handleTypes != cudaMemHandleTypeNone) {
        if (const cudaError_t error = check_handle_type(__func__, properties->handleTypes);
            error != cudaSuccess)
            return error;
    }
    if (properties->location.type == cudaMemLocationTypeDevice) {
        if (const cudaError_t error = expect_device(__func__, properties->location.id); error != cudaSuccess)
            return error;
    } else if (properties->location.type != cudaMemLocationTypeHost) {
        return refuse(cudaErrorInvalidValue, __func__,
                      "the location is of type %d; expected cudaMemLocationTypeDevice",
                      static_cast<int>(properties->location.type));
    }
    auto* made = new CUmemPool_st;
    made->limit = properties->maxSize;
    made->is_shareable = properties->handleTypes != cudaMemHandleTypeNone;
    made->is_of_host = properties->location.type == cudaMemLocationTypeHost;
    made->device = made->is_of_host ? 0 : properties->location.id;
    made->readers = made->is_of_host ? ~std::uint64_t{0} : std::uint64_t{1} << made->device;
    const std::scoped_lock lock(mutex);
    pools().insert(made);
    *pool = made;
    return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    if (pool >= &default_pools().of.front() && pool <= &default_pools().of.back())
        return refuse(cudaErrorInvalidValue, __func__, "the device's default pool cannot be destroyed");
    const std::scoped_lock lock(mutex);
    if (current_pool_of(pool->device) == pool)
        current_pool_of(pool->device) = &default_pools().of[static_cast<std::size_t>(pool->device)];
    pools().erase(pool);
    if (pool->used == 0) delete pool;  // otherwise when its last allocation is freed
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t) {
    return check_pool(__func__, pool);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    if (value == nullptr) return refuse(cudaErrorInvalidValue, __func__, "value is null");
    const std::scoped_lock lock(mutex);
    if (is_reuse(attribute)) {
        *static_cast<int*>(value) = pool->reuse[attribute - cudaMemPoolReuseFollowEventDependencies];
        return cudaSuccess;
    }
    auto& result = *static_cast<std::uint64_t*>(value);
    switch (attribute) {
        case cudaMemPoolAttrReleaseThreshold:
            result = pool->release_threshold;
            return cudaSuccess;
        case cudaMemPoolAttrReservedMemCurrent:
        case cudaMemPoolAttrUsedMemCurrent:
            result = pool->used;
            return cudaSuccess;
        case cudaMemPoolAttrReservedMemHigh:
            result = pool->most_reserved;
            return cudaSuccess;
        case cudaMemPoolAttrUsedMemHigh:
            result = pool->most_used;
            return cudaSuccess;
        default:
            return refuse(cudaErrorInvalidValue, __func__, "attribute is %d", static_cast<int>(attribute));
    }
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    if (value == nullptr) return refuse(cudaErrorInvalidValue, __func__, "value is null");
    const std::scoped_lock lock(mutex);
    if (is_reuse(attribute)) {
        pool->reuse[attribute - cudaMemPoolReuseFollowEventDependencies] = *static_cast<const int*>(value);
        return cudaSuccess;
    }
    const std::uint64_t number = *static_cast<const std::uint64_t*>(value);
    if (attribute == cudaMemPoolAttrReleaseThreshold) {
        pool->release_threshold = number;
        return cudaSuccess;
    }
    const bool high = attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh;
    if (!high)
        return refuse(cudaErrorInvalidValue, __func__, "attribute is %d, which cannot be set",
                      static_cast<int>(attribute));
    if (number != 0)
        return refuse(cudaErrorInvalidValue, __func__, "a high-water mark is set to %llu; expected 0",
                      static_cast<unsigned long long>(number));
    (attribute == cudaMemPoolAttrUsedMemHigh ? pool->most_used : pool->most_reserved) = pool->used;
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list, std::size_t count) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    if (list == nullptr && count > 0) return refuse(cudaErrorInvalidValue, __func__, "the list is null");
    for (std::size_t i = 0; i < count; ++i) {
        const cudaMemAccessDesc& access = list[i];
        if (access.location.type != cudaMemLocationTypeDevice)
            return refuse(cudaErrorInvalidValue, __func__,
                          "the location of item %zu is of type %d; expected cudaMemLocationTypeDevice", i,
                          static_cast<int>(access.location.type));
        if (const cudaError_t error = expect_device(__func__, access.location.id); error != cudaSuccess)
            return error;
        if (several_devices() && access.location.id != pool->device) continue;
        if (access.flags != cudaMemAccessFlagsProtReadWrite)
            return refuse(cudaErrorInvalidValue, __func__,
                          "the flags of item %zu are %d: a device always has access to its own pools", i,
                          static_cast<int>(access.flags));
    }
    std::vector<const void*> of_pool;
    {
        const std::scoped_lock lock(mutex);
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t reader = std::uint64_t{1} << list[i].location.id;
            const bool may_read = list[i].flags != cudaMemAccessFlagsProtNone;
            pool->readers = may_read ? pool->readers | reader : pool->readers & ~reader;
        }
        for (const auto& [pointer, piece] : pieces()) {
            if (piece.pool == pool) of_pool.push_back(pointer);
        }
    }
    for (const void* const pointer : of_pool)
        set_readers(pointer, pool->readers);
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    if (flags == nullptr || location == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "the flags to set or the location are null");
    if (const cudaError_t error = expect_device(__func__, location->id); error != cudaSuccess) return error;
    const std::scoped_lock lock(mutex);
    *flags = (pool->readers >> location->id & 1) != 0 ? cudaMemAccessFlagsProtReadWrite
                                                      : cudaMemAccessFlagsProtNone;
    return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    if (pool->is_imported)
        return refuse(cudaErrorInvalidValue, __func__,
                      "the pool is another process's; that process allocates from it");
    {
        const std::scoped_lock lock(mutex);
        if (pool->limit != 0 && pool->used + bytes > pool->limit)
            return refuse(cudaErrorMemoryAllocation, __func__,
                          "%zu bytes; the pool has %llu in use of at most %llu", bytes,
                          static_cast<unsigned long long>(pool->used),
                          static_cast<unsigned long long>(pool->limit));
    }
    const DeviceScope scope(pool->device);  // the memory belongs to this device, and so does a default stream
    const cudaError_t error = cudaMallocAsync(pointer, bytes, stream);
    if (error != cudaSuccess || *pointer == nullptr) return error;
    note_pool_release(*pointer);  // cudaMallocAsync took it from the current pool
    note_pool_allocation(pool, *pointer, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                               cudaMemAllocationHandleType type, unsigned flags) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    if (handle == nullptr || flags != 0)
        return refuse(cudaErrorInvalidValue, __func__, "the handle to set is null, or flags are not 0");
    if (const cudaError_t error = check_handle_type(__func__, type); error != cudaSuccess) return error;
    if (!pool->is_shareable)
        return refuse(cudaErrorInvalidValue, __func__,
                      "the pool's handleTypes are none; expected cudaMemHandleTypePosixFileDescriptor");
    // The memory itself is exported pointer by pointer. The pool is represented by a file that only
    // contains a mark.
    const int file = memfd_create("cuda_on_cpu pool", MFD_CLOEXEC);
    if (file < 0 || write(file, kPoolMark, sizeof kPoolMark) != sizeof kPoolMark) {
        if (file >= 0) close(file);
        return refuse(cudaErrorOperatingSystem, __func__, "no file can be made");
    }
    std::memcpy(handle, &file, sizeof file);
    return cudaSuccess;
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                                 cudaMemAllocationHandleType type, unsigned flags) {
    if (pool == nullptr || flags != 0)
        return refuse(cudaErrorInvalidValue, __func__, "the pool to set is null, or flags are not 0");
    if (const cudaError_t error = check_handle_type(__func__, type); error != cudaSuccess) return error;
    const int file = static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
    char mark[sizeof kPoolMark] = {};
    if (pread(file, mark, sizeof mark, 0) != sizeof mark || std::memcmp(mark, kPoolMark, sizeof mark) != 0)
        return refuse(cudaErrorInvalidValue, __func__, "%d is no descriptor of an exported pool", file);
    auto* const made = new CUmemPool_st;
    made->is_imported = true;
    const std::scoped_lock lock(mutex);
    pools().insert(made);
    *pool = made;
    return cudaSuccess;
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
    if (data == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the data to set are null");
    {
        const std::scoped_lock lock(mutex);
        const auto found = pieces().find(pointer);
        if (found == pieces().end() || !found->second.pool->is_shareable)
            return refuse(cudaErrorInvalidValue, __func__,
                          "pointer %p is not memory of a pool with handles for other processes", pointer);
    }
    return export_memory(__func__, pointer, data);
}

cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool, cudaMemPoolPtrExportData* data) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    if (data == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the data are null");
    if (!pool->is_imported)
        return refuse(cudaErrorInvalidValue, __func__,
                      "the pool is this process's own; expected one of cudaMemPoolImportFromShareableHandle");
    if (const cudaError_t error = import_memory(__func__, data, pointer); error != cudaSuccess) return error;
    const std::scoped_lock lock(mutex);
    imported_pointers().insert(*pointer);
    return cudaSuccess;
}
