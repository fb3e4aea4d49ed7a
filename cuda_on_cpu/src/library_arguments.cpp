#include "library_arguments.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <map>
#include <mutex>

#include "copies.hpp"
#include "errors.hpp"
#include "memory.hpp"
#include "observer.hpp"
#include "pages.hpp"

namespace cuda_on_cpu {

bool reachable(const char* function, const Region& region) {
    if (region.bytes == 0 || region.columns == 0) return true;
    const std::size_t extent = bytes_of({region.bytes, region.pitch, region.columns});
    if (region.pointer != nullptr && device_accessible(region.pointer, extent)) return true;
    std::fprintf(stderr, "cuda_on_cpu: %s: %s is ", function, region.name);
    if (region.pointer == nullptr) {
        std::fprintf(stderr, "null; expected %zu bytes of device memory\n", extent);
    } else if (plain_host_memory(region.pointer)) {
        std::fprintf(
            stderr,
            "the host pointer %p; a GPU cannot reach that memory. Copy it to memory from cudaMalloc\n",
            region.pointer);
    } else {
        std::fprintf(stderr, "%p; expected %zu bytes inside one live allocation%s%s\n", region.pointer,
                     extent, find_allocation(region.pointer) ? "; it lies " : "",
                     describe_address(region.pointer).c_str());
    }
    lose_context(cudaErrorIllegalAddress);
    return false;
}

namespace {

std::mutex mutex;

// The number of calls that need each guard page to be readable.
std::map<char*, int>& open_guards() {
    static auto* guards = new std::map<char*, int>;  // usable until the last static destructor
    return *guards;
}

}  // namespace

ReadableGuards::ReadableGuards(std::initializer_list<const void*> pointers) {
    for (const void* pointer : pointers)
        open(pointer);
}

ReadableGuards::ReadableGuards(const std::vector<Region>& regions) {
    for (const Region& region : regions)
        open(region.pointer);
}

void ReadableGuards::open(const void* pointer) {
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->freed || allocation->mapping == nullptr) return;
    char* guard = allocation->mapping + allocation->mapping_size - guard_size();
    const std::scoped_lock lock(mutex);
    if (open_guards()[guard]++ == 0) mprotect(guard, page_size(), PROT_READ);
    guards_.push_back(guard);
}

ReadableGuards::~ReadableGuards() {
    const std::scoped_lock lock(mutex);
    for (char* guard : guards_) {
        if (--open_guards()[guard] > 0) continue;
        open_guards().erase(guard);
        mprotect(guard, page_size(), PROT_NONE);
    }
}

void note_written(const Region& region) {
    if (memory_observer == nullptr || region.bytes == 0) return;
    auto* begin = static_cast<char*>(const_cast<void*>(region.pointer));
    if (region.pitch == region.bytes || region.columns == 1) {
        memory_observer->memory_written(begin, region.bytes * region.columns);
        return;
    }
    for (std::size_t column = 0; column < region.columns; ++column)
        memory_observer->memory_written(begin + column * region.pitch, region.bytes);
}

}  // namespace cuda_on_cpu
