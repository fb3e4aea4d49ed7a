// Peer access between devices. While a kernel runs, the pages of other devices that it may not
// access are protected.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_on_cpu {

// May kernels of `device` access memory of cudaMalloc on device `owner`?
bool has_peer_access(int device, int owner);
// False: the access was already set so.
bool set_peer_access(int device, int owner, bool allowed);

// The pages of an allocation, with guard pages on each side.
struct GuardedMemory {
    char* mapping;
    std::size_t size;
    int owner;
    std::uint64_t readers;  // for memory of a pool: bit d is set if device d may access it
    bool of_pool;
};
// Protects the memory until the guard is lifted.
void guard(const GuardedMemory& memory);

// For the signal handler: classifies a segmentation fault. `device` is that of the kernel; -1: no
// kernel was running.
enum class GuardFault {
    none,      // the fault has another cause
    retry,     // the access is allowed, and the memory is accessible now
    forbidden  // the memory belongs to another device
};
GuardFault guard_fault(const void* address, int device);
// The allocation's pages will be reused. Call with the lock of memory.cpp held.
void forget_guarded(const char* mapping);
// Makes all memory accessible until the next kernel starts.
void lift_guard();

}  // namespace cuda_on_cpu
