// Day 11: the extents of a grid and the address of a cell.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"

namespace day11 {

// The extents of the grid. Cell (x, y, z) is element (z * ny + y) * nx + x.
struct Grid {
    int nx;
    int ny;
    int nz;

    __device__ std::size_t row() const { return static_cast<std::size_t>(nx); }  // from y to y + 1
    __device__ std::size_t plane() const { return row() * static_cast<std::size_t>(ny); }
    __device__ std::size_t index(int x, int y, int z) const {
        return static_cast<std::size_t>(z) * plane() + static_cast<std::size_t>(y) * row() +
               static_cast<std::size_t>(x);
    }
    __device__ bool has(int x, int y, int z) const {
        return x >= 0 && x < nx && y >= 0 && y < ny && z >= 0 && z < nz;
    }
    // Not on the boundary, whose cells keep their values.
    __device__ bool inside(int x, int y, int z) const {
        return x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1;
    }
};

// How many blocks cover `cells` cells of an axis, if each computes `of_block` of them.
inline unsigned blocks_along(int cells, int of_block) {
    return static_cast<unsigned>(course::ceil_div(cells, of_block));
}

}  // namespace day11
