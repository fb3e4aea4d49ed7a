// Declares the lesson's launch instead of writing its own.
// exercise: day01/one_per_element
// expect: does not compile
// whole file: vector_add.cuh
#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"

namespace day01 {
extern void launch_one_per_element(const float*, const float*, float*, std::size_t, cudaStream_t);
extern void launch_grid_stride(const float*, const float*, float*, std::size_t, cudaStream_t);
extern void launch_float4(const float*, const float*, float*, std::size_t, cudaStream_t);
}  // namespace day01
