// The device that the stand-in pretends to be: limits of a GPU of one compute capability
// (CUDA_ON_CPU_CAPABILITY), and the host's memory.
#pragma once

#include <atomic>
#include <cstddef>

namespace cuda_on_cpu {

class Kernel;

// Unless a line says otherwise, those of compute capability 9.0.
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

// Has the program called the runtime, which initialises the driver, too?
extern std::atomic<bool> runtime_in_use;

// Of streams: a lower number is more urgent. A GPU's numbers; here priorities change nothing.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

// Multiprocessors: as many as OS threads run blocks.
unsigned multiprocessors();

// The dynamic shared memory with which a kernel may be launched: what cudaFuncSetAttribute has set,
// or what its static shared memory leaves of 48 KB. The first launch runs with all of 48 KB: only a
// block that runs shows the static part.
std::size_t allowed_dynamic_shared(const Kernel& kernel);

// Blocks of this shape that fit on one multiprocessor at a time, by threads and shared memory.
unsigned blocks_per_multiprocessor(unsigned threads, std::size_t shared);

}  // namespace cuda_on_cpu
