// Memory of cudaMalloc and similar functions: the allocations, with their guard pages and canaries.
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

// Poison, the contents of uninitialised memory: a repeated 16-bit pattern. One, two or four of them
// in a row are NaN in every floating-point format of that size. Arithmetic keeps a NaN's mantissa,
// so a result shows which memory it was computed from.
inline constexpr std::uint16_t kSharedPoison = 0xFFFE;
inline constexpr std::uint16_t kDevicePoison = 0xFFFD;
// Canaries fill the bytes between an allocation and its guard pages. They are NaN as well, so that
// a result computed from them is visible. Allocations use three patterns in turn: with a single
// pattern a copy from behind one array to behind another would go unnoticed.
inline constexpr std::uint16_t kCanaries[] = {0x7FFF, 0x7FFE, 0x7FFD};
inline constexpr std::uint16_t kSharedCanary = 0x7FFC;  // beside the variables in shared memory
inline constexpr unsigned char kPoison = 0xFF;          // of registers, and of elements outside a tensor

// Fills memory with a 16-bit pattern, in phase with the address: at an odd address it starts with
// the high byte.
void fill(void* memory, std::size_t size, std::uint16_t pattern);

struct Allocation {
    char* begin;
    std::size_t size;
    cudaMemoryType type;  // device, host (pinned) or managed
    bool freed;
    char* mapping;  // the pages around it; null if the memory is the user's own (cudaHostRegister)
    std::size_t mapping_size;
    std::uint16_t canary = 0;  // pattern of the other bytes of its pages
    // The file with its pages, if other processes may map them; -1: none.
    int file = -1;
    int device = 0;
    bool of_pool = false;
    std::uint64_t readers = 0;  // for memory of a pool: bit d is set if device d may access it
    bool for_host = false;      // memory of a pool that the host may access
    bool closed = false;        // to the host: see DeviceWork
};

// Exists while an OS thread works on device memory: runs a kernel, a copy, or a function of a
// library. While none exists, device memory is closed: its pages are protected, so that code of the
// host which uses a device pointer faults, as it does with a GPU. Programs that launch very often
// leave it open at times, because closing and opening may take 20 ms and 3 % of the time.
class DeviceWork {
  public:
    DeviceWork();
    ~DeviceWork();
    DeviceWork(const DeviceWork&) = delete;
    DeviceWork& operator=(const DeviceWork&) = delete;
};
// From now on the host may access all device memory, for algorithms that run as code of the host.
void open_to_host();
// The same for one allocation, which `begin` is the start of.
void open_to_host(const void* begin);
// Is there time left for closing memory, and may the host's code be held off it?
bool may_close_memory();
// For a signal handler: does the address lie in memory that is closed to the host? False while an
// allocation is being made.
bool is_closed(const volatile void* address);

// May kernels of `device` access the allocation?
bool may_access(int device, const Allocation& allocation);
// Marks the allocation as memory of a pool that these devices may access.
void set_readers(const void* begin, std::uint64_t readers);
// Holds the lock of this file while it calls `function`.
void for_each_live_allocation(const std::function<void(const Allocation&)>& function);

// A new allocation whose last byte lies before a guard page (up to the alignment), all bytes
// poisoned. Null: out of memory.
void* allocate(std::size_t size, cudaMemoryType type);
// Returns an error as cudaFree does: cudaErrorInvalidValue if `pointer` is not the start of a live
// allocation of this type. cudaMemoryTypeDevice includes managed memory.
cudaError_t release(void* pointer, cudaMemoryType type, const char* function);
// Set once there are pools (memory_pools.cpp), and called with each pointer that is released.
extern constinit std::atomic<void (*)(const void*)> pool_memory_released;
void register_host(void* pointer, std::size_t size);
bool unregister_host(void* pointer);
// Moves the pages of a live allocation to an unnamed file, which other processes can map and which
// is closed when the allocation is released. -1: out of memory.
int share_allocation(char* begin);
// Lets kernels use memory that is managed elsewhere, until the range is removed.
void add_range(char* begin, std::size_t size, cudaMemoryType type);
void remove_range(char* begin);
// Counts memory that is allocated elsewhere as used. False: there is not enough.
bool take_bytes(std::size_t size);
void give_back_bytes(std::size_t size);

// The allocation, live or freed, that contains `address`, in its own bytes or in its guard pages.
std::optional<Allocation> find_allocation(const volatile void* address);

// Is [pointer, pointer + size) inside one live allocation that kernels may use, or inside static
// storage of the program (where __device__ and __constant__ variables live)?
bool device_accessible(const volatile void* pointer, std::size_t size);
// Is `pointer` mapped host memory that a GPU could not access?
bool plain_host_memory(const volatile void* pointer);

// "4 bytes past the end of the 4000-byte allocation at 0x..."; empty if nothing is near.
std::string describe_address(const volatile void* address);
// The same for a signal handler: empty while an allocation is being made.
std::string try_to_describe_address(const volatile void* address);
// "element 2147450879 of the 24-byte allocation at 0x...: that index comes from ..."; empty if the
// address was not computed from such an index.
std::string describe_wild_index(const volatile void* address);

// A message about bytes around an allocation that a kernel overwrote without reaching a guard page;
// empty: none.
std::string damaged_allocation();

// The range [begin, end) of the variables in the program's image, which kernels may write.
struct ImageRange {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};
ImageRange writable_image();
// Is it the address of a function of the program rather than of data?
bool in_program_code(const void* address);
// Is it an instruction or a variable of the image into which this file is linked?
bool in_program(const void* address);

// In the order of their addresses.
std::vector<Allocation> live_allocations();

// The memory of each device: an equal share of the machine's memory.
std::size_t total_bytes();
// The memory that allocate() can still provide. As on a GPU, memory used by other programs does not
// count. Changes in their use since this program started are only noticed when an allocation does
// not fit, or fits again.
std::size_t free_bytes();

}  // namespace cuda_on_cpu
