// Occupancy by formula (PMPP 4.7): how many blocks of a kernel are resident on a multiprocessor at
// the same time, and which resource limits that number.
// cudaOccupancyMaxActiveBlocksPerMultiprocessor returns the number only.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>

namespace course {

// The resources of a multiprocessor, and their allocation granularity.
struct MultiprocessorLimits {
    int warps = 0;
    int blocks = 0;
    int registers = 0;
    std::size_t shared_bytes = 0;
    std::size_t shared_bytes_of_block = 0;  // no block may have more
    std::size_t reserved_shared_bytes = 0;  // reserved by the system in each block
    std::size_t shared_portion = 128;       // a block's shared memory is a multiple of this
    int register_portion = 256;             // a warp's registers are a multiple of this
    int partitions = 4;                     // a warp and its registers belong to one of them
};

// The limits of a device. The allocation granularity is not part of its properties; it follows
// from the compute capability.
MultiprocessorLimits limits_of(const cudaDeviceProp& properties);

// The limits of the current device.
MultiprocessorLimits multiprocessor_limits();

// The limits of GPUs that need not be here, in ascending order of their compute capability.
struct CapabilityLimits {
    const char* capability;  // "9.0"
    MultiprocessorLimits limits;
};
std::span<const CapabilityLimits> known_capabilities();

inline constexpr int kMostThreadsOfABlock = 1024;    // of every GPU so far
inline constexpr int kMostRegistersOfAThread = 255;  // likewise

// The resources that a block of a kernel needs.
struct BlockNeeds {
    int threads = 0;               // of a block
    int registers = 0;             // of a thread; 0: registers are ignored
    std::size_t shared_bytes = 0;  // of a block, static and dynamic
};

struct Occupancy {
    int blocks = 0;    // resident on a multiprocessor; 0: a single block exceeds its resources
    double share = 0;  // of the warps that a multiprocessor can hold
    // The resources that leave no room for one more block: "registers", "shared memory", "threads"
    // or "blocks", separated by commas.
    std::string limit;
};

// The blocks that each resource alone allows on a multiprocessor.
struct ResourceBound {
    const char* resource;  // as in Occupancy::limit
    int blocks;            // kUnlimited if the block needs none of the resource
};
inline constexpr int kUnlimited = std::numeric_limits<int>::max();

// All throw std::invalid_argument for a block without threads or negative registers.
std::array<ResourceBound, 4> bounds_of(const BlockNeeds& needs, const MultiprocessorLimits& limits);
int blocks_at_once(const BlockNeeds& needs, const MultiprocessorLimits& limits);
Occupancy occupancy(const BlockNeeds& needs, const MultiprocessorLimits& limits);

}  // namespace course
