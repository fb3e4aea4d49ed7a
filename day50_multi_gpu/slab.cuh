// The layout of a rank's part in memory: its cells, the weights of a cell, its neighbours, and the
// grids that the steps read and write in turn.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day50 {

// The distance of the farthest neighbour along x, y and z; 25 points in all. A slab has as many
// ghost planes on each side.
inline constexpr int kRadius = 4;

// The grid of a rank. Planes 0 to planes - 1 are the rank's own. Planes -kRadius to -1, and
// `planes` to planes + kRadius - 1, are ghost planes: copies of the neighbours' planes.
struct Local {
    int nx, ny;
    int planes;
    int first;  // plane 0 of the rank is this plane of the whole grid
    int nz;     // planes of the whole grid

    __host__ __device__ std::size_t plane() const { return static_cast<std::size_t>(nx) * ny; }
    __host__ __device__ std::size_t index(int x, int y, int z) const {
        return (z + kRadius) * plane() + static_cast<std::size_t>(y) * nx + x;
    }
};

// The weights of the 25 points: of the cell itself, and of the neighbours at distance 1, 2, 3, 4
// along each axis.
struct Weights {
    float centre;
    float at[kRadius];
};
constexpr Weights kWeights{0.4f, {0.05f, 0.025f, 0.015f, 0.01f}};  // 0.4 + 6 x 0.1 = 1

// Where a rank's edge planes go: the ghost planes of its neighbours, in their memory. Null where
// there is no neighbour.
struct Neighbours {
    float* below;  // ghost planes of the rank below, for planes 0 to kRadius - 1
    float* above;  // ghost planes of the rank above, for the last kRadius planes
};

// The grids of a rank. Step 0 reads `in`. The steps write `out` and `spare` in turn, the last one
// `out`.
struct Grids {
    const float* in;
    float* out;
    float* spare;

    __host__ __device__ float* target(unsigned step, unsigned steps) const {
        return (steps - 1 - step) % 2 == 0 ? out : spare;
    }
    __host__ __device__ const float* source(unsigned step, unsigned steps) const {
        return step == 0 ? in : target(step - 1, steps);
    }
};

}  // namespace day50
