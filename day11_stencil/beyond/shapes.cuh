// Day 11, beyond: other shapes. All have a version like the first, with a thread per cell; the box
// also has one with register tiling. The 25-point star is stencil_basic_star<4>; the order of its
// constants is in ring.cuh.
#pragma once

#include "ring.cuh"
#include "stencil.cuh"

namespace day11 {

constexpr int kBasicCols = 32;  // cells of a block along x
constexpr int kBasicRows = 8;   // and along y

template <int kRadius>
__global__ void stencil_basic_star(const float* in, float* out, Grid grid, Star<kRadius> star) {
    const int x = static_cast<int>(blockIdx.x) * kBasicCols + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kBasicRows + static_cast<int>(threadIdx.y);
    const int z = static_cast<int>(blockIdx.z);
    if (!grid.has(x, y, z)) return;
    const std::size_t i = grid.index(x, y, z);
    const bool inside = x >= kRadius && x < grid.nx - kRadius && y >= kRadius && y < grid.ny - kRadius &&
                        z >= kRadius && z < grid.nz - kRadius;
    float value = in[i];
    if (inside) {
        const float* k = star.k;
        value *= *k++;
        for (const std::size_t step : {std::size_t{1}, grid.row(), grid.plane()}) {
            for (std::size_t d = 1; d <= kRadius; ++d) {
                value = fmaf(*k++, in[i - d * step], value);
                value = fmaf(*k++, in[i + d * step], value);
            }
        }
    }
    out[i] = value;
}

template <int kRadius>
void launch_basic_star(const float* in, float* out, const Grid& grid, const Star<kRadius>& star,
                       cudaStream_t stream) {
    const dim3 blocks(blocks_along(grid.nx, kBasicCols), blocks_along(grid.ny, kBasicRows),
                      static_cast<unsigned>(grid.nz));
    const dim3 threads(kBasicCols, kBasicRows);
    stencil_basic_star<kRadius><<<blocks, threads, 0, stream>>>(in, out, grid, star);
}

struct Box {
    float k[27];
};

__global__ void stencil_basic_box(const float* in, float* out, Grid grid, Box box) {
    const int x = static_cast<int>(blockIdx.x) * kBasicCols + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kBasicRows + static_cast<int>(threadIdx.y);
    const int z = static_cast<int>(blockIdx.z);
    if (!grid.has(x, y, z)) return;
    float value = in[grid.index(x, y, z)];
    if (grid.inside(x, y, z)) {
        value = 0;
        const float* k = box.k;
        for (int dz = -1; dz <= 1; ++dz)
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx)
                    value = fmaf(*k++, in[grid.index(x + dx, y + dy, z + dz)], value);
    }
    out[grid.index(x, y, z)] = value;
}

inline void launch_basic_box(const float* in, float* out, const Grid& grid, const Box& box,
                             cudaStream_t stream) {
    const dim3 blocks(blocks_along(grid.nx, kBasicCols), blocks_along(grid.ny, kBasicRows),
                      static_cast<unsigned>(grid.nz));
    const dim3 threads(kBasicCols, kBasicRows);
    stencil_basic_box<<<blocks, threads, 0, stream>>>(in, out, grid, box);
}

// Idea: thread coarsening along z, with register tiling. A thread loads the nine cells of a plane
// around its column once, and keeps them for the two planes that follow.
// Cost removed: two of three loads.
// Still limits it: nine 4-byte loads per cell, from the L1 cache.
__global__ void stencil_register_tiled_box(const float* in, float* out, Grid grid, Box box, int planes) {
    const int x = static_cast<int>(blockIdx.x) * kBasicCols + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kBasicRows + static_cast<int>(threadIdx.y);
    const int first = static_cast<int>(blockIdx.z) * planes;
    const int end = min(first + planes, grid.nz);
    if (!grid.has(x, y, 0)) return;

    float window[3][9];  // cells around the column, of planes z - 1, z, z + 1
    const auto load = [&](float(&nine)[9], int z) {
#pragma unroll
        for (int i = 0; i < 9; ++i) {
            const int nx = x + i % 3 - 1;
            const int ny = y + i / 3 - 1;
            nine[i] = grid.has(nx, ny, z) ? in[grid.index(nx, ny, z)] : 0.0f;
        }
    };
    load(window[0], first - 1);
    load(window[1], first);
#pragma unroll 3
    for (int z = first; z < end; ++z) {
        load(window[2], z + 1);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 27; ++i)
            sum = fmaf(box.k[i], window[i / 9][i % 9], sum);
        out[grid.index(x, y, z)] = grid.inside(x, y, z) ? sum : window[1][4];
#pragma unroll
        for (int i = 0; i < 9; ++i) {
            window[0][i] = window[1][i];
            window[1][i] = window[2][i];
        }
    }
}

inline void launch_register_tiled_box(const float* in, float* out, const Grid& grid, const Box& box,
                                      cudaStream_t stream) {
    constexpr int kPlanes = 64;
    const dim3 blocks(blocks_along(grid.nx, kBasicCols), blocks_along(grid.ny, kBasicRows),
                      blocks_along(grid.nz, kPlanes));
    const dim3 threads(kBasicCols, kBasicRows);
    stencil_register_tiled_box<<<blocks, threads, 0, stream>>>(in, out, grid, box, kPlanes);
}

// The five constants of a cross in a plane.
struct Five {
    float centre;
    float left, right;
    float back, front;
};

__device__ inline float weighted_sum(const Five& k, float centre, float left, float right, float back,
                                     float front) {
    float sum = k.centre * centre;
    sum = fmaf(k.left, left, sum);
    sum = fmaf(k.right, right, sum);
    sum = fmaf(k.back, back, sum);
    return fmaf(k.front, front, sum);
}

__device__ inline bool inside_plane(const Grid& grid, int x, int y) {
    return x > 0 && x < grid.nx - 1 && y > 0 && y < grid.ny - 1;
}

__global__ void stencil_basic_cross(const float* in, float* out, Grid grid, Five k) {
    const int x = static_cast<int>(blockIdx.x) * kBasicCols + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kBasicRows + static_cast<int>(threadIdx.y);
    if (!grid.has(x, y, 0)) return;
    const std::size_t i = grid.index(x, y, 0);
    out[i] = inside_plane(grid, x, y)
                 ? weighted_sum(k, in[i], in[i - 1], in[i + 1], in[i - grid.row()], in[i + grid.row()])
                 : in[i];
}

inline void launch_basic_cross(const float* in, float* out, const Grid& grid, const Five& k,
                               cudaStream_t stream) {
    const dim3 blocks(blocks_along(grid.nx, kBasicCols), blocks_along(grid.ny, kBasicRows),
                      static_cast<unsigned>(grid.nz));
    const dim3 threads(kBasicCols, kBasicRows);
    stencil_basic_cross<<<blocks, threads, 0, stream>>>(in, out, grid, k);
}

}  // namespace day11
