// Which device may access whose memory. Kernels of one device cannot reach the memory of another
// one that they may not access: its pages are taken out of reach while they run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_on_cpu {

// May kernels of `device` access what cudaMalloc gives on `owner`?
bool has_peer_access(int device, int owner);
// False: it was so before.
bool set_peer_access(int device, int owner, bool allowed);

// The pages of an allocation, with a guard page on each side.
struct GuardedMemory {
    char* mapping;
    std::size_t size;
    int owner;
    std::uint64_t readers;  // of memory of a pool: bit d: device d may access it
    bool of_pool;
};
// Out of reach, until the guard is lifted.
void guard(const GuardedMemory& memory);

// A segmentation fault, for the signal handler. `device` is that of the kernel; -1: it was none.
enum class GuardFault {
    none,      // something else is wrong
    retry,     // the access is right: the memory can be reached now
    forbidden  // the memory is another device's
};
GuardFault guard_fault(const void* address, int device);
// The allocation's pages will be something else. With the lock of memory.cpp.
void forget_guarded(const char* mapping);
// All memory can be reached until the next kernel begins.
void lift_guard();

}  // namespace cuda_on_cpu
