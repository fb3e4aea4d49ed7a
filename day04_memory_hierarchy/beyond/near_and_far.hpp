// The host API of what day 4 has beyond its core. The kernels are in near_and_far.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day04 {

// --- Near: a piece of x for each SM, which its block adds up again and again ----------------------

struct Again {
    std::size_t piece_bytes = 0;  // a multiple of 16
    unsigned rounds = 1;
};

// Threads of a launch: as many as `sums` has elements.
std::size_t again_threads();

// Enqueues the kernel. x has a piece for each SM, all of the same size, and starts at a multiple of
// 16 bytes. All sums together are `rounds` times the sum of x, modulo 2^32. Throws
// std::invalid_argument for a bad argument, CudaError when the launch fails.
using AgainLauncher = void (*)(course::DeviceSpan<const unsigned> x, unsigned rounds,
                               course::DeviceSpan<unsigned> sums, cudaStream_t stream);
using AgainVersion = course::Version<AgainLauncher, Again>;
std::span<const AgainVersion> again_versions();

}  // namespace day04
