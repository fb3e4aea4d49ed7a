// Day 11, beyond: grids of any size. The marches of the other versions are for large grids. On a
// small one a few blocks would march for long, while most of the GPU waits. Here the length of a
// march depends on the grid, so that all multiprocessors have a part of it. And a lane has single
// cells, not four neighbours, so that rows need no alignment.
#pragma once

#include <algorithm>

#include "common/device/launch.hpp"
#include "common/device/warp.cuh"
#include "grid.cuh"
#include "shapes.cuh"

namespace day11 {

// The constants of a star along the first kAxes axes, in the order of Star.
template <int kRadius, int kAxes>
struct Arms {
    float k[1 + 2 * kRadius * kAxes];
};

// Idea: a thread marches along z with kRows x kCols cells: rows that are neighbours, and columns
// that are as far apart as the block is wide, so that each access of a warp is coalesced. Own cells
// stay in registers, neighbours along x and y come from the L1 cache.
// Cost removed: idle multiprocessors, for small grids; loads of parts of sectors, for rows that are
// not aligned.
// Still limits it: not profiled. A cell takes 2 kRadius loads along x and 2 kRadius / kRows along
// y, from L1 where they hit.
template <int kRadius, int kAxes, int kRows, int kCols>
__global__ __launch_bounds__(256) void stencil_march_star(const float* __restrict__ in,
                                                          float* __restrict__ out, Grid grid,
                                                          Arms<kRadius, kAxes> star, int planes) {
    constexpr int kWindow = kAxes == 3 ? 2 * kRadius + 1 : 1;  // planes that a new value needs
    constexpr int kCentre = kWindow / 2;
    // With several columns the block is as wide as a warp, which makes their distance a constant.
    const int wide = kCols > 1 ? course::kWarpSize : static_cast<int>(blockDim.x);
    const int x = static_cast<int>(blockIdx.x) * wide * kCols + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y) * kRows;
    const int first = static_cast<int>(blockIdx.z) * planes;
    const int end = min(first + planes, grid.nz);
    if (!grid.has(x, y, 0)) return;

    const auto row_step = static_cast<std::ptrdiff_t>(grid.row());
    const auto plane_step = static_cast<std::ptrdiff_t>(grid.plane());
    const float* from = in + grid.index(x, y, first);  // the thread's first cell of plane z
    float* to = out + grid.index(x, y, first);
    float window[kWindow][kRows][kCols];  // own cells of planes z - kCentre .. z + kCentre
    // Row y + r of plane z + p, where `from` is at plane z. Out-of-range cells are zero-filled.
    const auto load = [&](float(&cells)[kCols], int r, int z, int p) {
        const bool there = y + r >= 0 && y + r < grid.ny && z + p >= 0 && z + p < grid.nz;
#pragma unroll
        for (int c = 0; c < kCols; ++c)
            cells[c] =
                there && x + c * wide < grid.nx ? from[r * row_step + p * plane_step + c * wide] : 0.0f;
    };
#pragma unroll
    for (int p = 1; p < kWindow; ++p) {
#pragma unroll
        for (int r = 0; r < kRows; ++r)
            load(window[p][r], r, first, p - 1 - kCentre);
    }
#pragma unroll(kRadius == 1 ? kWindow : 1)
    for (int z = first; z < end; ++z, from += plane_step, to += plane_step) {
        float along_y[kRows + 2 * kRadius][kCols];  // rows y - kRadius .. of plane z
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int c = 0; c < kCols; ++c) {
#pragma unroll
                for (int p = 0; p + 1 < kWindow; ++p)
                    window[p][r][c] = window[p + 1][r][c];
            }
            load(window[kWindow - 1][r], r, z, kCentre);
#pragma unroll
            for (int c = 0; c < kCols; ++c)
                along_y[kRadius + r][c] = window[kCentre][r][c];
        }
#pragma unroll
        for (int d = 1; d <= kRadius; ++d) {
            load(along_y[kRadius - d], -d, z, 0);
            load(along_y[kRadius + kRows - 1 + d], kRows - 1 + d, z, 0);
        }
        const bool plane_inside = kAxes < 3 || (z >= kRadius && z < grid.nz - kRadius);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const bool row_inside = plane_inside && y + r >= kRadius && y + r < grid.ny - kRadius;
#pragma unroll
            for (int c = 0; c < kCols; ++c) {
                const int column = x + c * wide;
                const bool inside = row_inside && column >= kRadius && column < grid.nx - kRadius;
                const float* const cell = from + r * row_step + c * wide;
                const float* k = star.k;
                float sum = *k++ * window[kCentre][r][c];
#pragma unroll
                for (int d = 1; d <= kRadius; ++d) {
                    sum = fmaf(*k++, inside ? cell[-d] : 0.0f, sum);
                    sum = fmaf(*k++, inside ? cell[d] : 0.0f, sum);
                }
#pragma unroll
                for (int d = 1; d <= kRadius; ++d) {
                    sum = fmaf(*k++, along_y[kRadius + r - d][c], sum);
                    sum = fmaf(*k++, along_y[kRadius + r + d][c], sum);
                }
#pragma unroll
                for (int d = 1; d <= kCentre; ++d) {
                    sum = fmaf(*k++, window[kCentre - d][r][c], sum);
                    sum = fmaf(*k++, window[kCentre + d][r][c], sum);
                }
                if (y + r < grid.ny && column < grid.nx)
                    to[r * row_step + c * wide] = inside ? sum : window[kCentre][r][c];
            }
        }
    }
}

// The same for the box: three cells of kRows + 2 rows of each plane are kept, where
// stencil_register_tiled_box keeps nine for one row.
// Still limits it: not profiled. A cell takes 3 + 6 / kRows loads.
template <int kRows>
__global__ __launch_bounds__(256) void stencil_march_box(const float* __restrict__ in,
                                                         float* __restrict__ out, Grid grid, Box box,
                                                         int planes) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y) * kRows;
    const int first = static_cast<int>(blockIdx.z) * planes;
    const int end = min(first + planes, grid.nz);
    if (!grid.has(x, y, 0)) return;

    float window[3][kRows + 2][3];  // planes z - 1 .. z + 1, rows y - 1 .., columns x - 1 .. x + 1
    const auto load = [&](float(&plane)[kRows + 2][3], int z) {
#pragma unroll
        for (int r = 0; r < kRows + 2; ++r) {
#pragma unroll
            for (int c = 0; c < 3; ++c) {
                const bool there = grid.has(x + c - 1, y + r - 1, z);
                plane[r][c] = there ? in[grid.index(x + c - 1, y + r - 1, z)] : 0.0f;
            }
        }
    };
    load(window[1], first - 1);
    load(window[2], first);
#pragma unroll 3
    for (int z = first; z < end; ++z) {
#pragma unroll
        for (int r = 0; r < kRows + 2; ++r) {
#pragma unroll
            for (int c = 0; c < 3; ++c) {
                window[0][r][c] = window[1][r][c];
                window[1][r][c] = window[2][r][c];
            }
        }
        load(window[2], z + 1);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            if (y + r >= grid.ny) break;
            float sum = 0;
#pragma unroll
            for (int i = 0; i < 27; ++i)
                sum = fmaf(box.k[i], window[i / 9][r + i / 3 % 3][i % 3], sum);
            out[grid.index(x, y + r, z)] = grid.inside(x, y + r, z) ? sum : window[1][r + 1][1];
        }
    }
}

// Enqueues `kernel`, whose threads have `rows` x `cols` cells of each plane, in blocks of 256
// threads. Marches are as long as they can be with 1,024 threads for each multiprocessor, and at
// most `most_planes`: longer ones did not pay on an H200.
template <class Kernel, class Weights>
void launch_march(Kernel* kernel, int rows, int cols, int most_planes, const float* in, float* out,
                  const Grid& grid, const Weights& weights, cudaStream_t stream) {
    constexpr int kThreads = 256;
    constexpr std::size_t kThreadsPerSm = 1024;
    int wide = course::kWarpSize;
    while (cols == 1 && wide > 4 && wide / 2 >= grid.nx)
        wide /= 2;  // rows of a few cells: a warp takes several of them
    const int high = kThreads / wide;
    const unsigned across = blocks_along(grid.nx, wide * cols);
    const unsigned down = blocks_along(grid.ny, high * rows);
    // Threads, if each marches through all planes.
    const std::size_t columns = std::size_t{across} * down * kThreads;
    const std::size_t shortest =
        columns * static_cast<std::size_t>(grid.nz) / (course::multiprocessors() * kThreadsPerSm);
    const int planes =
        static_cast<int>(std::clamp(shortest, std::size_t{1}, static_cast<std::size_t>(most_planes)));
    course::launch(kernel,
                   {.grid = dim3(across, down, blocks_along(grid.nz, planes)),
                    .block = dim3(static_cast<unsigned>(wide), static_cast<unsigned>(high)),
                    .stream = stream},
                   in, out, grid, weights, planes);
}

}  // namespace day11
