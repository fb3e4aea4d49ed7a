#include "ipc.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "cuda_runtime_api.h"
#include "errors.hpp"
#include "exported_file.hpp"
#include "memory.hpp"
#include "pages.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::uint64_t kMemory = 0x794d7570436e4f43;

struct Imported {
    std::uint64_t inode;
    char* mapping;  // with a guard page on each side
    std::size_t mapping_size;
    std::size_t size;
    int count = 1;
};

std::mutex mutex;
std::map<void*, Imported>& imported() {
    static auto& all = *new std::map<void*, Imported>;
    return all;
}

}  // namespace

cudaError_t export_memory(const char* function, void* pointer, void* handle) {
    if (handle == nullptr) return refuse(cudaErrorInvalidValue, function, "the handle to set is null");
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->freed || allocation->mapping == nullptr ||
        allocation->type != cudaMemoryTypeDevice || allocation->begin != pointer)
        return refuse(cudaErrorInvalidValue, function,
                      "pointer %p is not the start of device memory that this process has allocated",
                      pointer);
    wait_for_all_streams();
    const int file = share_allocation(allocation->begin);
    if (file < 0) return refuse(cudaErrorMemoryAllocation, function, "%zu bytes", allocation->size);
    ExportedFile what = exported(kMemory, file);
    what.offset = static_cast<std::uint64_t>(allocation->begin - allocation->mapping) - guard_size();
    what.size = allocation->size;
    std::memset(handle, 0, CUDA_IPC_HANDLE_SIZE);
    std::memcpy(handle, &what, sizeof what);
    return cudaSuccess;
}

cudaError_t import_memory(const char* function, const void* handle, void** pointer) {
    if (pointer == nullptr) return refuse(cudaErrorInvalidValue, function, "the pointer to set is null");
    ExportedFile what{};
    const int file = open_file(function, handle, kMemory, &what);
    if (file < 0) return cudaPeekAtLastError();
    const std::scoped_lock lock(mutex);
    for (auto& [known, memory] : imported()) {
        if (memory.inode != what.inode) continue;
        close(file);
        ++memory.count;
        *pointer = known;
        return cudaSuccess;
    }
    const std::size_t pages = round_up_to_pages(what.offset + what.size);
    const std::size_t mapping_size = pages + 2 * guard_size();
    void* const around =
        mmap(nullptr, mapping_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char* const mapping = static_cast<char*>(around);
    const bool is_mapped = around != MAP_FAILED && mmap(mapping + guard_size(), pages, PROT_READ | PROT_WRITE,
                                                        MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    close(file);
    if (!is_mapped) {
        if (around != MAP_FAILED) munmap(around, mapping_size);
        return refuse(cudaErrorMemoryAllocation, function, "%llu bytes",
                      static_cast<unsigned long long>(what.size));
    }
    char* const begin = mapping + guard_size() + what.offset;
    imported()[begin] = {what.inode, mapping, mapping_size, what.size};
    add_range(begin, what.size, cudaMemoryTypeDevice);
    expect_concurrency();
    *pointer = begin;
    return cudaSuccess;
}

bool close_memory(void* pointer) {
    const std::scoped_lock lock(mutex);
    const auto found = imported().find(pointer);
    if (found == imported().end()) return false;
    if (--found->second.count > 0) return true;
    remove_range(static_cast<char*>(pointer));
    munmap(found->second.mapping, found->second.mapping_size);
    imported().erase(found);
    return true;
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
    return export_memory(__func__, pointer, handle);
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
    if (flags != cudaIpcMemLazyEnablePeerAccess)
        return refuse(cudaErrorInvalidValue, __func__,
                      "flags are %u; expected cudaIpcMemLazyEnablePeerAccess", flags);
    return import_memory(__func__, &handle, pointer);
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
    wait_for_all_streams();
    if (close_memory(pointer)) return cudaSuccess;
    return refuse(cudaErrorInvalidValue, __func__, "pointer %p is not of cudaIpcOpenMemHandle", pointer);
}
