#include "memory_pools.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "cuda_runtime_api.h"
#include "errors.hpp"

// Freed memory is given back at once, so no threshold and no trimming changes anything.
struct CUmemPool_st {
    std::uint64_t release_threshold = 0;
    int reuse[3] = {1, 1, 1};
    std::uint64_t used = 0;
    std::uint64_t most_used = 0;
    std::uint64_t most_reserved = 0;
    std::uint64_t limit = 0;  // bytes; 0: none
};

namespace cuda_on_cpu {
namespace {

std::mutex mutex;
CUmemPool_st default_pool;
cudaMemPool_t current_pool = &default_pool;
std::set<cudaMemPool_t> pools = {&default_pool};

struct Piece {
    cudaMemPool_t pool;
    std::size_t bytes;
};
std::map<const void*, Piece> pieces;

bool exists(cudaMemPool_t pool) {
    const std::scoped_lock lock(mutex);
    return pools.contains(pool);
}

cudaError_t check_pool(const char* function, cudaMemPool_t pool) {
    if (exists(pool)) return cudaSuccess;
    return refuse(cudaErrorInvalidValue, function, "pool %p does not exist", static_cast<void*>(pool));
}

cudaError_t check_device(const char* function, int device) {
    if (device == 0) return cudaSuccess;
    return refuse(cudaErrorInvalidDevice, function, "device %d; there is one device, 0", device);
}

cudaError_t refuse_other_processes(const char* function) {
    return refuse(cudaErrorNotSupported, function,
                  "memory of another process cannot be reached here: each process has a device of its own");
}

bool is_reuse(cudaMemPoolAttr attribute) {
    return attribute >= cudaMemPoolReuseFollowEventDependencies &&
           attribute <= cudaMemPoolReuseAllowInternalDependencies;
}

}  // namespace

void note_pool_allocation(cudaMemPool_t pool, const void* pointer, std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    if (pool == nullptr) pool = current_pool;
    pieces[pointer] = {pool, bytes};
    pool->used += bytes;
    pool->most_used = std::max(pool->most_used, pool->used);
    pool->most_reserved = std::max(pool->most_reserved, pool->used);
}

void note_pool_release(const void* pointer) {
    const std::scoped_lock lock(mutex);
    const auto found = pieces.find(pointer);
    if (found == pieces.end()) return;
    const Piece piece = found->second;
    pieces.erase(found);
    piece.pool->used -= piece.bytes;
    const bool destroyed = !pools.contains(piece.pool);
    if (destroyed && piece.pool->used == 0) delete piece.pool;
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    if (pool == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the pool to set is null");
    if (const cudaError_t error = check_device(__func__, device); error != cudaSuccess) return error;
    *pool = &default_pool;
    return cudaSuccess;
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    if (const cudaError_t error = check_device(__func__, device); error != cudaSuccess) return error;
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    const std::scoped_lock lock(mutex);
    current_pool = pool;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    if (pool == nullptr) return refuse(cudaErrorInvalidValue, __func__, "the pool to set is null");
    if (const cudaError_t error = check_device(__func__, device); error != cudaSuccess) return error;
    const std::scoped_lock lock(mutex);
    *pool = current_pool;
    return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    if (pool == nullptr || properties == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "the pool to set or the properties are null");
    if (properties->allocType != cudaMemAllocationTypePinned)
        return refuse(cudaErrorInvalidValue, __func__,
                      "allocType is %d; expected cudaMemAllocationTypePinned",
                      static_cast<int>(properties->allocType));
    if (properties->handleTypes != cudaMemHandleTypeNone) return refuse_other_processes(__func__);
    if (properties->location.type == cudaMemLocationTypeDevice) {
        if (const cudaError_t error = check_device(__func__, properties->location.id); error != cudaSuccess)
            return error;
    } else if (properties->location.type != cudaMemLocationTypeHost) {
        return refuse(cudaErrorInvalidValue, __func__,
                      "the location is of type %d; expected cudaMemLocationTypeDevice",
                      static_cast<int>(properties->location.type));
    }
    auto* made = new CUmemPool_st;
    made->limit = properties->maxSize;
    const std::scoped_lock lock(mutex);
    pools.insert(made);
    *pool = made;
    return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    if (pool == &default_pool)
        return refuse(cudaErrorInvalidValue, __func__, "the device's default pool cannot be destroyed");
    const std::scoped_lock lock(mutex);
    if (current_pool == pool) current_pool = &default_pool;
    pools.erase(pool);
    if (pool->used == 0) delete pool;  // else when the last of its memory is freed
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
        if (const cudaError_t error = check_device(__func__, access.location.id); error != cudaSuccess)
            return error;
        if (access.flags != cudaMemAccessFlagsProtReadWrite)
            return refuse(cudaErrorInvalidValue, __func__,
                          "the flags of item %zu are %d: a device always has access to its own pools", i,
                          static_cast<int>(access.flags));
    }
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    if (flags == nullptr || location == nullptr)
        return refuse(cudaErrorInvalidValue, __func__, "the flags to set or the location are null");
    if (const cudaError_t error = check_device(__func__, location->id); error != cudaSuccess) return error;
    *flags = cudaMemAccessFlagsProtReadWrite;
    return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
    if (const cudaError_t error = check_pool(__func__, pool); error != cudaSuccess) return error;
    {
        const std::scoped_lock lock(mutex);
        if (pool->limit != 0 && pool->used + bytes > pool->limit)
            return refuse(cudaErrorMemoryAllocation, __func__,
                          "%zu bytes; the pool has %llu in use of at most %llu", bytes,
                          static_cast<unsigned long long>(pool->used),
                          static_cast<unsigned long long>(pool->limit));
    }
    const cudaError_t error = cudaMallocAsync(pointer, bytes, stream);
    if (error != cudaSuccess || *pointer == nullptr) return error;
    note_pool_release(*pointer);  // cudaMallocAsync took it from the current pool
    note_pool_allocation(pool, *pointer, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemPoolExportToShareableHandle(void*, cudaMemPool_t, cudaMemAllocationHandleType, unsigned) {
    return refuse_other_processes(__func__);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t*, void*, cudaMemAllocationHandleType,
                                                 unsigned) {
    return refuse_other_processes(__func__);
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData*, void*) {
    return refuse_other_processes(__func__);
}

cudaError_t cudaMemPoolImportPointer(void**, cudaMemPool_t, cudaMemPoolPtrExportData*) {
    return refuse_other_processes(__func__);
}
