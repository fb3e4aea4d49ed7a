// What the kernels of day 14 and their callers share: atoms, and the points of the map.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day14 {

// Coordinates in angstrom (1e-10 m), the charge in elementary charges. 16 bytes: one load.
struct alignas(16) Atom {
    float x, y, z;
    float charge;
};

// The points of the map: nz slices of ny rows of nx points, `spacing` angstrom apart. Point (0, 0,
// 0) is the origin.
struct Grid {
    int nx, ny, nz;
    float spacing;

    __host__ __device__ std::size_t index(int x, int y, int z) const {
        return (static_cast<std::size_t>(z) * static_cast<std::size_t>(ny) + static_cast<std::size_t>(y)) *
                   static_cast<std::size_t>(nx) +
               static_cast<std::size_t>(x);
    }
    // The coordinate of a point along an axis.
    __host__ __device__ float at(int i) const { return static_cast<float>(i) * spacing; }
};

// Added to the square of each distance, the square of 1/64 angstrom. So a point that coincides with
// an atom has a finite potential, 64 times the charge. At 1 angstrom the potential is 0.012 % less.
inline constexpr float kSoftening = 1.0f / 4096;

}  // namespace day14
