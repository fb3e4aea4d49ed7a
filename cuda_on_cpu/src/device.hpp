// The emulated device: the limits of a GPU of one compute capability (CUDA_ON_CPU_CAPABILITY), and
// the host's memory.
#pragma once

#include <atomic>
#include <cstddef>

namespace cuda_on_cpu {

class Kernel;

// The defaults are those of compute capability 9.0.
struct DeviceLimits {
    int major = 9;
    int minor = 0;
    unsigned threads_per_block = 1024;
    unsigned block_z = 64;
    unsigned grid_x = 2147483647;
    unsigned grid_yz = 65535;
    std::size_t shared_per_block = 48 * 1024;
    std::size_t shared_per_block_optin = 227 * 1024;
    std::size_t shared_per_multiprocessor = 228 * 1024;
    std::size_t shared_reserved_per_block = 1024;
    unsigned threads_per_multiprocessor = 2048;
    unsigned blocks_per_multiprocessor = 32;
    unsigned cluster_portable = 8;  // blocks; 0: no clusters
    unsigned cluster_maximum = 16;
    unsigned parameter_bytes = 4096;
};

const DeviceLimits& device_limits();

// Has the program called the runtime API? That initialises the driver as well.
extern std::atomic<bool> runtime_in_use;
// By cudaFree(nullptr), a usual way to make the primary context current.
extern std::atomic<bool> context_made_by_runtime;

// Priorities of streams: a lower number is more urgent. The range is that of a GPU; here priorities
// have no effect.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

// The number of multiprocessors, which is the number of OS threads that run blocks.
unsigned multiprocessors();

// The dynamic shared memory with which a kernel may be launched: the value that
// cudaFuncSetAttribute has set, or 48 KB minus the kernel's static shared memory. The static size
// is known only after a block has run, so the first launch may use all of the 48 KB.
std::size_t allowed_dynamic_shared(const Kernel& kernel);

// Blocks of this shape that fit on one multiprocessor at a time, limited by threads and shared
// memory.
unsigned blocks_per_multiprocessor(unsigned threads, std::size_t shared);

}  // namespace cuda_on_cpu
