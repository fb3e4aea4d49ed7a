// Grid arithmetic for launchers.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#include "common/check/check.hpp"

namespace course {

template <class Integer>
constexpr __host__ __device__ Integer ceil_div(Integer count, Integer step) {
    return count / step + (count % step != 0 ? 1 : 0);
}

// The number of blocks of `block_size` threads for `threads` threads in total. Throws
// std::invalid_argument when a grid cannot have that many blocks.
inline unsigned blocks_for(std::size_t threads, int block_size) {
    const std::size_t blocks = ceil_div(threads, static_cast<std::size_t>(block_size));
    if (blocks > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw std::invalid_argument("blocks_for: " + std::to_string(threads) + " threads need " +
                                    std::to_string(blocks) + " blocks; a grid has at most 2^31 - 1");
    }
    return static_cast<unsigned>(blocks);
}

// The number of multiprocessors of the current device.
inline unsigned multiprocessors() {
    int device = 0;
    int count = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return static_cast<unsigned>(count);
}

// How many blocks of `kernel` can be resident on the current device at the same time:
// multiprocessors times blocks per multiprocessor.
template <class Kernel>
unsigned resident_blocks(Kernel* kernel, int block_size, std::size_t dynamic_shared = 0) {
    int blocks_on_each = 0;
    CUDA_CHECK(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_on_each, kernel, block_size, dynamic_shared));
    return multiprocessors() * static_cast<unsigned>(blocks_on_each);
}

}  // namespace course
