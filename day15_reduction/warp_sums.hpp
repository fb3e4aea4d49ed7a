// The host API of warp_sums.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"

namespace day15 {

// out[w] is the sum of elements 32 w to 32 w + 31 of `in`, of those that exist. Throws
// std::invalid_argument unless `out` has an element for each 32 of `in`, rounded up.
void sum_each_warp(course::DeviceSpan<const float> in, course::DeviceSpan<float> out, cudaStream_t stream);

// Shared memory of a block of sum_each_warp, in bytes; known once it has run.
std::size_t shared_bytes_of_sum_each_warp();

// The sums of 256 elements each, one after the other, by one block. Throws std::invalid_argument
// unless `in` has 256 elements for each of `out`.
void sum_in_a_row(course::DeviceSpan<const float> in, course::DeviceSpan<float> out, cudaStream_t stream);

}  // namespace day15
