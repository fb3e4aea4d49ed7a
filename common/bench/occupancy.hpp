// Occupancy by formula (PMPP 4.7): how many blocks of a kernel a multiprocessor runs at the same
// time, and what stops it from running more. cudaOccupancyMaxActiveBlocksPerMultiprocessor gives
// the number; this also gives the reason.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

namespace course {

// What a multiprocessor has, and in which portions it hands it out.
struct MultiprocessorLimits {
    int warps = 0;
    int blocks = 0;
    int registers = 0;
    std::size_t shared_bytes = 0;
    std::size_t shared_bytes_of_block = 0;  // no block may have more
    std::size_t reserved_shared_bytes = 0;  // the system's own, for each block
    std::size_t shared_portion = 128;       // a block's shared memory is a multiple of this
    int register_portion = 256;             // a warp's registers are a multiple of this
    int partitions = 4;                     // a warp lives in one of them, and finds its registers there
};

// Of a device. Its properties do not tell the portions: those follow from its compute capability.
MultiprocessorLimits limits_of(const cudaDeviceProp& properties);

// Of the current device.
MultiprocessorLimits multiprocessor_limits();

// What a kernel takes.
struct BlockNeeds {
    int threads = 0;               // of a block
    int registers = 0;             // of a thread; 0: they are not counted
    std::size_t shared_bytes = 0;  // of a block, static and dynamic
};

struct Occupancy {
    int blocks = 0;    // at the same time on a multiprocessor; 0: a block asks for more than there is
    double share = 0;  // of the warps that a multiprocessor could have
    // What stops one more block: "registers", "shared memory", "threads" or "blocks"; all that do,
    // with commas between.
    std::string limit;
};

// Both throw std::invalid_argument for a block without threads or negative registers.
int blocks_at_once(const BlockNeeds& needs, const MultiprocessorLimits& limits);
Occupancy occupancy(const BlockNeeds& needs, const MultiprocessorLimits& limits);

}  // namespace course
