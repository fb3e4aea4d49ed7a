// A regular grid of voxels.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day37 {

// Voxels on a regular grid over the field of view, which is 1 long in each direction. Voxel i of n
// is at (i - (n - 1) / 2) / n, so that the grid is its own mirror image. x varies fastest.
struct Grid {
    std::size_t nx = 0;
    std::size_t ny = 0;
    std::size_t nz = 0;

    __host__ __device__ std::size_t count() const { return nx * ny * nz; }
    __host__ __device__ std::size_t rows() const { return ny * nz; }
};

}  // namespace day37
