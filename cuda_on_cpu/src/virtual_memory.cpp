// Virtual memory management of the driver API: a program reserves addresses, creates memory, and
// maps the memory to the addresses. Memory is an unnamed file, so that it can be mapped at one or
// several addresses, and by another process that has received its descriptor.
//
// The rest of the stand-in treats adjacent readable mappings of one reservation as one allocation,
// because a copy or a kernel may span several mappings, as on a GPU.
#include <cuda.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "driver.hpp"
#include "memory.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;  // as on GPUs

class Memory {
  public:
    Memory(int file, std::size_t size, const CUmemAllocationProp& properties)
        : file_(file), size_(size), properties_(properties) {}
    ~Memory() {
        close(file_);
        give_back_bytes(size_);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    int file() const { return file_; }
    std::size_t size() const { return size_; }
    const CUmemAllocationProp& properties() const { return properties_; }

  private:
    int file_;
    std::size_t size_;
    CUmemAllocationProp properties_;
};

struct Mapping {
    std::size_t size;
    std::shared_ptr<Memory> memory;
    CUmemGenericAllocationHandle handle;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
};

struct Reservation {
    std::size_t size;
    std::map<char*, Mapping> mappings;
    std::map<char*, std::size_t> readable;  // the allocations as the rest of the stand-in sees them
};

std::mutex mutex;
std::map<char*, Reservation>& reservations() {
    static auto& all = *new std::map<char*, Reservation>;
    return all;
}
struct Handle {
    std::shared_ptr<Memory> memory;
    int count = 1;
};
std::map<CUmemGenericAllocationHandle, Handle>& handles() {
    static auto& all = *new std::map<CUmemGenericAllocationHandle, Handle>;
    return all;
}

Reservation* reservation_of(char* begin, std::size_t size) {
    auto after = reservations().upper_bound(begin);
    if (after == reservations().begin()) return nullptr;
    const auto found = std::prev(after);
    return begin + size <= found->first + found->second.size ? &found->second : nullptr;
}

// Publishes the addresses that kernels may use now to the rest of the stand-in.
void publish(Reservation& reservation) {
    for (const auto& [begin, size] : reservation.readable)
        remove_range(begin);
    reservation.readable.clear();
    char* end = nullptr;
    char* run = nullptr;
    for (const auto& [begin, mapping] : reservation.mappings) {
        if (mapping.access == CU_MEM_ACCESS_FLAGS_PROT_NONE) continue;
        if (begin != end) run = begin;
        end = begin + mapping.size;
        reservation.readable[run] = static_cast<std::size_t>(end - run);
    }
    for (const auto& [begin, size] : reservation.readable)
        add_range(begin, size, cudaMemoryTypeDevice);
}

CUresult check_multiple(const char* function, const char* name, std::size_t value) {
    if (value > 0 && value % kGranularity == 0) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_VALUE, function,
                       "%s is %zu; expected a multiple of the granularity, %zu", name, value, kGranularity);
}

// Is [begin, begin + size) covered by whole mappings, without gaps?
bool covers(Reservation& reservation, char* begin, std::size_t size) {
    char* next = begin;
    while (next < begin + size) {
        const auto found = reservation.mappings.find(next);
        if (found == reservation.mappings.end()) return false;
        next += found->second.size;
    }
    return next == begin + size;
}

CUresult add_handle(CUmemGenericAllocationHandle* handle, std::shared_ptr<Memory> memory) {
    static CUmemGenericAllocationHandle last = 0;
    const std::scoped_lock lock(mutex);
    handles()[++last] = Handle{std::move(memory)};
    *handle = last;
    return CUDA_SUCCESS;
}

int protection(CUmemAccess_flags access) {
    return access == CU_MEM_ACCESS_FLAGS_PROT_NONE   ? PROT_NONE
           : access == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ
                                                     : PROT_READ | PROT_WRITE;
}

CUresult no_such_handle(const char* function, CUmemGenericAllocationHandle handle) {
    return refuse_call(CUDA_ERROR_INVALID_VALUE, function,
                       "handle %llu is none of cuMemCreate, or has been released", handle);
}

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
    if (granularity == nullptr || properties == nullptr)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "an argument is null");
    CUDA_ON_CPU_CHECK(check_device(__func__, properties->location.id));
    *granularity = kGranularity;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t size, std::size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags) {
    if (address == nullptr || flags != 0)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__,
                           "the address to set is null, or flags are not 0");
    CUDA_ON_CPU_CHECK(check_multiple(__func__, "size", size));
    if ((alignment & (alignment - 1)) != 0)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "alignment is %zu; expected a power of two",
                           alignment);
    alignment = std::max(alignment, kGranularity);
    const auto reserve = [](char* hint, std::size_t bytes) {
        void* const found = mmap(hint, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return found == MAP_FAILED ? nullptr : static_cast<char*>(found);
    };
    // The requested address if it is free, which lets a reservation grow.
    char* begin = wanted % alignment == 0 && wanted != 0 ? reserve(pointer_of(wanted), size) : nullptr;
    if (begin != nullptr && begin != pointer_of(wanted)) {
        munmap(begin, size);
        begin = nullptr;
    }
    if (begin == nullptr) {
        char* const larger = reserve(nullptr, size + alignment);
        if (larger == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        const auto number = reinterpret_cast<std::uintptr_t>(larger);
        const std::size_t before = (alignment - number % alignment) % alignment;
        begin = larger + before;
        if (before > 0) munmap(larger, before);
        munmap(begin + size, alignment - before);
    }
    const std::scoped_lock lock(mutex);
    reservations()[begin].size = size;
    *address = reinterpret_cast<std::uintptr_t>(begin);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t size) {
    const std::scoped_lock lock(mutex);
    const auto found = reservations().find(pointer_of(address));
    if (found == reservations().end() || found->second.size != size)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__,
                           "0x%llx with %zu bytes is not what cuMemAddressReserve gave", address, size);
    if (!found->second.mappings.empty())
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__,
                           "memory is still mapped to 0x%llx; expected cuMemUnmap before", address);
    munmap(found->first, size);
    reservations().erase(found);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
    if (handle == nullptr || properties == nullptr || flags != 0)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "an argument is null, or flags are not 0");
    CUDA_ON_CPU_CHECK(check_multiple(__func__, "size", size));
    if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "type is %d; expected pinned memory",
                           static_cast<int>(properties->type));
    if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        CUDA_ON_CPU_CHECK(check_device(__func__, properties->location.id));
    if (!take_bytes(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const int file = memfd_create("cuda_on_cpu", MFD_CLOEXEC);
    void* memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, static_cast<off_t>(size)) == 0)
        memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        if (file >= 0) close(file);
        give_back_bytes(size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fill(memory, size, kDevicePoison);
    munmap(memory, size);
    return add_handle(handle, std::make_shared<Memory>(file, size, *properties));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    const std::scoped_lock lock(mutex);
    const auto found = handles().find(handle);
    if (found == handles().end()) return no_such_handle(__func__, handle);
    if (--found->second.count == 0) handles().erase(found);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t size, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    CUDA_ON_CPU_CHECK(check_multiple(__func__, "size", size));
    const std::scoped_lock lock(mutex);
    const auto found = handles().find(handle);
    if (found == handles().end()) return no_such_handle(__func__, handle);
    const std::shared_ptr<Memory>& memory = found->second.memory;
    if (offset != 0 || size > memory->size() || flags != 0)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__,
                           "offset is %zu, size is %zu; expected 0 and at most the %zu bytes of the memory",
                           offset, size, memory->size());
    char* const begin = pointer_of(address);
    Reservation* const reservation = reservation_of(begin, size);
    if (reservation == nullptr || address % kGranularity != 0)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__,
                           "%zu bytes at 0x%llx are not inside one reservation of cuMemAddressReserve", size,
                           address);
    for (const auto& [other, mapping] : reservation->mappings) {
        if (other < begin + size && begin < other + mapping.size)
            return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "memory is mapped at 0x%llx already",
                               address);
    }
    if (mmap(begin, size, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file(), 0) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    reservation->mappings[begin] = Mapping{size, memory, handle};
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t size) {
    const std::scoped_lock lock(mutex);
    char* const begin = pointer_of(address);
    Reservation* const reservation = reservation_of(begin, size);
    if (reservation == nullptr || !covers(*reservation, begin, size))
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__,
                           "%zu bytes at 0x%llx are not whole mappings of cuMemMap", size, address);
    mmap(begin, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    for (char* next = begin; next < begin + size;) {
        const auto found = reservation->mappings.find(next);
        next += found->second.size;
        reservation->mappings.erase(found);
    }
    publish(*reservation);
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t size, const CUmemAccessDesc* descriptions,
                        std::size_t count) {
    if (descriptions == nullptr || count == 0)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "there is no description");
    const std::scoped_lock lock(mutex);
    char* const begin = pointer_of(address);
    Reservation* const reservation = reservation_of(begin, size);
    if (reservation == nullptr || !covers(*reservation, begin, size))
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__,
                           "%zu bytes at 0x%llx are not whole mappings of cuMemMap", size, address);
    for (std::size_t i = 0; i < count; ++i) {
        if (descriptions[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
            CUDA_ON_CPU_CHECK(check_device(__func__, descriptions[i].location.id));
        mprotect(begin, size, protection(descriptions[i].flags));
        for (char* next = begin; next < begin + size;) {
            Mapping& mapping = reservation->mappings[next];
            mapping.access = descriptions[i].flags;
            next += mapping.size;
        }
    }
    publish(*reservation);
    return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
    if (flags == nullptr || location == nullptr)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "an argument is null");
    const std::scoped_lock lock(mutex);
    if (Reservation* const reservation = reservation_of(pointer_of(address), 1)) {
        for (const auto& [begin, mapping] : reservation->mappings) {
            if (pointer_of(address) < begin || pointer_of(address) >= begin + mapping.size) continue;
            *flags = mapping.access;
            return CUDA_SUCCESS;
        }
    }
    return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "no memory is mapped to 0x%llx", address);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
    const std::scoped_lock lock(mutex);
    const auto found = handles().find(handle);
    if (properties == nullptr || found == handles().end()) return no_such_handle(__func__, handle);
    *properties = found->second.memory->properties();
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    const std::scoped_lock lock(mutex);
    char* const byte = static_cast<char*>(address);
    if (Reservation* const reservation = reservation_of(byte, 1);
        handle != nullptr && reservation != nullptr) {
        for (const auto& [begin, mapping] : reservation->mappings) {
            if (byte < begin || byte >= begin + mapping.size) continue;
            *handle = mapping.handle;
            const auto [found, is_new] = handles().try_emplace(mapping.handle, Handle{mapping.memory});
            if (!is_new) ++found->second.count;
            return CUDA_SUCCESS;
        }
    }
    return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "no memory is mapped to %p", address);
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long) {
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return refuse_call(CUDA_ERROR_NOT_SUPPORTED, __func__,
                           "the type of the handle is %d; expected a POSIX file descriptor",
                           static_cast<int>(type));
    const std::scoped_lock lock(mutex);
    const auto found = handles().find(handle);
    if (shareable == nullptr || found == handles().end()) return no_such_handle(__func__, handle);
    const int file = dup(found->second.memory->file());
    std::memcpy(shareable, &file, sizeof file);
    return file < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return refuse_call(CUDA_ERROR_NOT_SUPPORTED, __func__,
                           "the type of the handle is %d; expected a POSIX file descriptor",
                           static_cast<int>(type));
    const int given = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
    struct stat status {};
    if (handle == nullptr || fstat(given, &status) != 0 || status.st_size == 0)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "%d is no descriptor of exported memory",
                           given);
    const int file = dup(given);
    if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    const auto size = static_cast<std::size_t>(status.st_size);
    if (!take_bytes(size)) {
        close(file);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = type;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return add_handle(handle, std::make_shared<Memory>(file, size, properties));
}
