// c = a + b, element by element: the host API of day 1. The kernels are in vector_add.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day01 {

// Enqueues c[i] = a[i] + b[i] on `stream`. Lengths must be equal; 0 is legal. c may be a, or b, but
// must not overlap either in any other way, because a thread would read what another one has
// written. Any alignment of a float. Throws std::invalid_argument for unequal lengths and such
// overlaps, CudaError when the launch fails.
using Launcher = void (*)(course::DeviceSpan<const float> a, course::DeviceSpan<const float> b,
                          course::DeviceSpan<float> c, cudaStream_t stream);

// The versions, slow to fast. The problem is the number of elements.
using VectorAdd = course::Version<Launcher, std::size_t>;
std::span<const VectorAdd> versions();

// The reference: a plain loop, on all cores of the CPU. Throws std::invalid_argument for unequal
// lengths.
void add_on_cpu(std::span<const float> a, std::span<const float> b, std::span<float> c);

}  // namespace day01
