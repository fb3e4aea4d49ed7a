// Memory of cudaMalloc and its relatives: the allocations, and their guard pages and canaries.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver_types.h"

namespace cuda_on_cpu {

// What memory holds before anything is written to it: 16 bits, repeated. Each is NaN in every
// floating-point format, also two or four in a row; and arithmetic keeps a NaN's mantissa, so a
// result shows which memory it was computed from.
inline constexpr std::uint16_t kSharedPoison = 0xFFFE;
inline constexpr std::uint16_t kDevicePoison = 0xFFFD;
// What lies around an allocation, up to its guard pages: NaN, too, so that a result computed from
// it shows. Three in turn, or a copy from behind one array to behind another would not.
inline constexpr std::uint16_t kCanaries[] = {0x7FFF, 0x7FFE, 0x7FFD};
inline constexpr unsigned char kPoison = 0xFF;  // of registers, and of what lies outside a tensor

// Fills memory with a pattern of 16 bits, in phase with its address: what begins at an odd one
// begins with the high byte.
void fill(void* memory, std::size_t size, std::uint16_t pattern);

struct Allocation {
    char* begin;
    std::size_t size;
    cudaMemoryType type;  // device, host (pinned) or managed
    bool freed;
    char* mapping;  // the pages around it; null if the memory is the user's own (cudaHostRegister)
    std::size_t mapping_size;
    std::uint16_t canary = 0;  // what its pages hold besides it
    int file = -1;             // that holds them, of memory that other processes may map
    int device = 0;
    bool of_pool = false;
    std::uint64_t readers = 0;  // of memory of a pool: bit d: device d may access it
};

// May kernels of `device` access it?
bool may_access(int device, const Allocation& allocation);
// The allocation is memory of a pool, which these devices may access.
void set_readers(const void* begin, std::uint64_t readers);
// With the lock of all that concerns memory.
void for_each_live_allocation(const std::function<void(const Allocation&)>& function);

// A new allocation whose last byte lies before a guard page (up to the alignment), all bytes
// poisoned. Null: no memory.
void* allocate(std::size_t size, cudaMemoryType type);
// An error as cudaFree gives: cudaErrorInvalidValue if `pointer` is no start of a live allocation
// of one of the types.
cudaError_t release(void* pointer, cudaMemoryType type, const char* function);
// Once there are pools (memory_pools.cpp): is called with what is released.
extern constinit std::atomic<void (*)(const void*)> pool_memory_released;
void register_host(void* pointer, std::size_t size);
bool unregister_host(void* pointer);
// Moves the pages of a live allocation to a file without a name, which other processes can map, and
// which is closed when the allocation is released. -1: there is no memory for it.
int share_allocation(char* begin);
// Memory that kernels may use from now on, until it is removed: pages that something else manages.
void add_range(char* begin, std::size_t size, cudaMemoryType type);
void remove_range(char* begin);
// Counts memory that something else makes as given out. False: there is not so much.
bool take_bytes(std::size_t size);
void give_back_bytes(std::size_t size);

// The allocation, live or freed, that holds `address` or whose guard pages hold it.
std::optional<Allocation> find_allocation(const volatile void* address);

// Is [pointer, pointer + size) inside one live allocation that kernels may use, or inside static
// storage of the program (where __device__ and __constant__ variables live)?
bool device_accessible(const volatile void* pointer, std::size_t size);
// Is `pointer` mapped memory of the host that a GPU could not reach?
bool plain_host_memory(const volatile void* pointer);

// "4 bytes past the end of the 4000-byte allocation at 0x..."; empty if nothing is near.
std::string describe_address(const volatile void* address);
// The same, in a signal handler: nothing, if an allocation is being made.
std::string try_to_describe_address(const volatile void* address);
// "element 2147450879 of the 24-byte allocation at 0x...: that index comes from ..."; empty if the
// address is not made of such an index.
std::string describe_wild_index(const volatile void* address);

// Bytes around allocations that a kernel overwrote without reaching a guard page: a message, or
// empty.
std::string damaged_allocation();

// Where variables of the program's image are that kernels may write: [begin, end).
struct ImageRange {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};
ImageRange writable_image();
// Is it the address of a function of the program, rather than of data?
bool in_program_code(const void* address);
// Is it an instruction or a variable of the image that this is linked into?
bool in_program(const void* address);

// In the order of their addresses.
std::vector<Allocation> live_allocations();

// Of each device: the machine's memory, shared equally.
std::size_t total_bytes();
// What allocate() can still give. As for a GPU: not what other programs have. That they have more
// or less since this one began is known when it shows: when an allocation does not fit, or fits
// again.
std::size_t free_bytes();

}  // namespace cuda_on_cpu
