// Memory that nodes of graphs allocate and free. Its address is fixed when the node is created, and
// it stays mapped as long as something can refer to the node. Between a free and the next launch it
// holds poison.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "cuda_runtime_api.h"
#include "errors.hpp"
#include "memory.hpp"
#include "memory_operations.hpp"
#include "memory_pools.hpp"

namespace cuda_on_cpu {
namespace {

struct GraphMemory {
    GraphMemory(void* begin, std::size_t bytes) : memory(begin), size(bytes) {}
    GraphMemory(const GraphMemory&) = delete;
    GraphMemory& operator=(const GraphMemory&) = delete;
    ~GraphMemory() { static_cast<void>(release(memory, cudaMemoryTypeDevice, "a graph's end")); }

    void* memory;
    std::size_t size;
    bool in_use = false;
};

struct Known {
    std::mutex mutex;
    std::map<const void*, std::weak_ptr<GraphMemory>> memory;
    std::uint64_t used = 0;
    std::uint64_t most_used = 0;
};

Known& known() {
    static Known& only = *new Known;  // usable until the last static destructor
    return only;
}

std::shared_ptr<GraphMemory> find_graph_memory(const void* pointer) {
    const std::scoped_lock lock(known().mutex);
    const auto found = known().memory.find(pointer);
    return found == known().memory.end() ? nullptr : found->second.lock();
}

cudaError_t use(GraphMemory& memory, bool in_use) {
    {
        const DeviceWork work;
        fill(memory.memory, memory.size, kDevicePoison);
    }
    const std::scoped_lock lock(known().mutex);
    if (memory.in_use == in_use) return cudaSuccess;
    memory.in_use = in_use;
    known().used += in_use ? memory.size : -memory.size;
    known().most_used = std::max(known().most_used, known().used);
    return cudaSuccess;
}

}  // namespace

cudaError_t graph_allocation(const char* function, std::size_t bytes, void** pointer,
                             StreamOperation* operation) {
    if (bytes == 0) return refuse(cudaErrorInvalidValue, function, "0 bytes; expected 1 or more");
    void* const begin = allocate(bytes, cudaMemoryTypeDevice);
    if (begin == nullptr) return refuse(cudaErrorMemoryAllocation, function, "%zu bytes", bytes);
    const auto memory = std::make_shared<GraphMemory>(begin, bytes);
    {
        const std::scoped_lock lock(known().mutex);
        known().memory[begin] = memory;
    }
    *pointer = begin;
    *operation = {
        .work = [memory] { return use(*memory, true); }, .type = cudaGraphNodeTypeMemAlloc, .launch = {}};
    return cudaSuccess;
}

cudaError_t graph_release(const char* function, void* pointer, StreamOperation* operation) {
    *operation = {.work = nullptr, .type = cudaGraphNodeTypeMemFree, .launch = {}};
    if (const auto memory = find_graph_memory(pointer); memory != nullptr) {
        operation->work = [memory] { return use(*memory, false); };
        return cudaSuccess;
    }
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->freed || allocation->begin != pointer)
        return refuse(cudaErrorInvalidValue, function, "pointer %p is not the start of a live allocation",
                      pointer);
    operation->work = [=] { return set_last_error(release_any(pointer, cudaMemoryTypeDevice, function)); };
    return cudaSuccess;
}

bool release_to_graph(void* pointer) {
    const auto memory = find_graph_memory(pointer);
    if (memory != nullptr) static_cast<void>(use(*memory, false));
    return memory != nullptr;
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaDeviceGraphMemTrim(int device) {
    return device == 0 ? cudaSuccess : refuse(cudaErrorInvalidDevice, __func__, "device %d", device);
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
    if (device != 0) return refuse(cudaErrorInvalidDevice, __func__, "device %d", device);
    if (value == nullptr) return refuse(cudaErrorInvalidValue, __func__, "value is null");
    const bool most =
        attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh;
    const std::scoped_lock lock(known().mutex);
    *static_cast<std::uint64_t*>(value) = most ? known().most_used : known().used;
    return cudaSuccess;
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType, void* value) {
    if (device != 0) return refuse(cudaErrorInvalidDevice, __func__, "device %d", device);
    if (value == nullptr || *static_cast<std::uint64_t*>(value) != 0)
        return refuse(cudaErrorInvalidValue, __func__, "expected 0, which resets a high-water mark");
    const std::scoped_lock lock(known().mutex);
    known().most_used = known().used;
    return cudaSuccess;
}
