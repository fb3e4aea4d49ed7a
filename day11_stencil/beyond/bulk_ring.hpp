// Day 11, beyond: the launch of bulk_ring, which is compiled for compute capability 9.0a.
#pragma once

#include <cuda_runtime.h>

#include "ring.cuh"

namespace day11 {

// Enqueues a sweep. Rows of the grid are 16-byte aligned, and no extent is 0. Instantiated for
// kRadius = 1.
template <int kRadius>
void launch_bulk_ring(const float* in, float* out, const Grid& grid, const Star<kRadius>& star,
                      cudaStream_t stream);

}  // namespace day11
