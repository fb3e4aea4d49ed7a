// Day 11: stencils.                                          PMPP chapter 8 (4th and 5th edition)
//
//   version         what is new                             what limits it
//   basic           a thread per cell                       L1: seven loads per cell
//   shared_tile     a block's cells in shared memory        latency; 58 % of a small tile is halo
//   coarsened_z     a block marches along z, three planes   latency: loads, barriers; seven reads
//   register_tiled  the own column in registers             latency: 4-byte loads, two barriers
//
// A sweep reads and writes each cell once. So a copy of the grid is the limit of all these
// versions. Each kernel is followed by its launch. beyond/ has versions without shared memory, with
// planes that are copied ahead, with several sweeps at once, and other shapes.
//
//   ./course run day11                                     every version, verified and timed
//   ./course run day11 --program                           program.cu: sweeps, from main() to the result
//   ./course inspect day11 --only shared_tile              sectors per load, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "grid.cuh"

namespace day11 {

// The seven constants. Kernel arguments are in constant memory, where a multiply-add reads an
// operand without a load.
struct Seven {
    float centre;
    float left, right;   // x - 1, x + 1
    float back, front;   // y - 1, y + 1
    float below, above;  // z - 1, z + 1
};

// The new value of a cell, one multiply-add for each neighbour. Floating-point sums depend on their
// order; all versions use this one.
__device__ inline float weighted_sum(const Seven& k, float centre, float left, float right, float back,
                                     float front, float below, float above) {
    float sum = k.centre * centre;
    sum = fmaf(k.left, left, sum);
    sum = fmaf(k.right, right, sum);
    sum = fmaf(k.back, back, sum);
    sum = fmaf(k.front, front, sum);
    sum = fmaf(k.below, below, sum);
    return fmaf(k.above, above, sum);
}

constexpr int kTile = 8;  // cells of a block's tile along each axis, one thread for each

// Idea: one thread per cell, which loads the cell and its six neighbours.
// Cost removed: the three loops of a CPU.
// Still limits it: L1 (counters: 94 % busy, DRAM 33 %): seven loads for thirteen operations.
__global__ void stencil_basic(const float* in, float* out, Grid grid, Seven k) {
    const int x = static_cast<int>(blockIdx.x) * kTile + static_cast<int>(threadIdx.x);
    const int y = static_cast<int>(blockIdx.y) * kTile + static_cast<int>(threadIdx.y);
    const int z = static_cast<int>(blockIdx.z) * kTile + static_cast<int>(threadIdx.z);
    if (!grid.has(x, y, z)) return;
    const std::size_t i = grid.index(x, y, z);
    if (grid.inside(x, y, z)) {
        out[i] = weighted_sum(k, in[i], in[i - 1], in[i + 1], in[i - grid.row()], in[i + grid.row()],
                              in[i - grid.plane()], in[i + grid.plane()]);
    } else {
        out[i] = in[i];
    }
}

inline void launch_basic(const float* in, float* out, const Grid& grid, const Seven& k, cudaStream_t stream) {
    const dim3 blocks(blocks_along(grid.nx, kTile), blocks_along(grid.ny, kTile),
                      blocks_along(grid.nz, kTile));
    const dim3 threads(kTile, kTile, kTile);
    stencil_basic<<<blocks, threads, 0, stream>>>(in, out, grid, k);
}

constexpr int kInnerTile = kTile - 2;  // cells that a tile computes along each axis

// Idea: the block loads a tile of 8 x 8 x 8 cells into shared memory, a cell per thread. All
// neighbours of the inner 6 x 6 x 6 cells are there.
// Cost removed: two thirds of the loads from global memory. A result takes 2.4 of them, not 7.
// Still limits it: latency, and the halo (counters: issue slots 57 % busy; warps wait for loads
// 35 % of their time, at barriers 25 %). 512 cells are loaded for 216 results. A block has at most
// 1,024 threads, so the tile cannot be much larger.
__global__ void stencil_shared_tile(const float* in, float* out, Grid grid, Seven k) {
    __shared__ float tile[kTile][kTile][kTile];
    const int tx = static_cast<int>(threadIdx.x);
    const int ty = static_cast<int>(threadIdx.y);
    const int tz = static_cast<int>(threadIdx.z);
    const int x = static_cast<int>(blockIdx.x) * kInnerTile + tx - 1;
    const int y = static_cast<int>(blockIdx.y) * kInnerTile + ty - 1;
    const int z = static_cast<int>(blockIdx.z) * kInnerTile + tz - 1;
    tile[tz][ty][tx] = grid.has(x, y, z) ? in[grid.index(x, y, z)] : 0.0f;
    __syncthreads();  // the tile is complete

    const bool in_halo =
        tx == 0 || tx == kTile - 1 || ty == 0 || ty == kTile - 1 || tz == 0 || tz == kTile - 1;
    if (in_halo || !grid.has(x, y, z)) return;
    float value = tile[tz][ty][tx];
    if (grid.inside(x, y, z)) {
        value = weighted_sum(k, value, tile[tz][ty][tx - 1], tile[tz][ty][tx + 1], tile[tz][ty - 1][tx],
                             tile[tz][ty + 1][tx], tile[tz - 1][ty][tx], tile[tz + 1][ty][tx]);
    }
    out[grid.index(x, y, z)] = value;
}

inline void launch_shared_tile(const float* in, float* out, const Grid& grid, const Seven& k,
                               cudaStream_t stream) {
    const dim3 blocks(blocks_along(grid.nx, kInnerTile), blocks_along(grid.ny, kInnerTile),
                      blocks_along(grid.nz, kInnerTile));
    const dim3 threads(kTile, kTile, kTile);
    stencil_shared_tile<<<blocks, threads, 0, stream>>>(in, out, grid, k);
}

constexpr int kPlaneTile = 32;                   // cells of a plane's tile along x and y, one thread each
constexpr int kInnerPlaneTile = kPlaneTile - 2;  // cells of it that are computed
constexpr int kPlanesOfBlock = 32;               // planes that a block computes, one after the other

// Idea: thread coarsening along z. A block holds three planes of a wide tile and marches: the
// current plane becomes the one below, the one above becomes the current one.
// Cost removed: most of the halo. 1,024 cells of a plane are loaded for 900 results. Along z, only
// two halo planes are loaded for kPlanesOfBlock planes of results.
// Still limits it: latency. Warps wait at barriers 31 % of their time, for loads 27 % (counters:
// issue slots 51 % busy, shared memory 20 %). A cell needs seven reads from shared memory. Three of
// them are cells that the thread itself has stored.
__global__ void stencil_coarsened_z(const float* in, float* out, Grid grid, Seven k) {
    __shared__ float planes[3][kPlaneTile][kPlaneTile];
    const int tx = static_cast<int>(threadIdx.x);
    const int ty = static_cast<int>(threadIdx.y);
    const int x = static_cast<int>(blockIdx.x) * kInnerPlaneTile + tx - 1;
    const int y = static_cast<int>(blockIdx.y) * kInnerPlaneTile + ty - 1;
    const int first = static_cast<int>(blockIdx.z) * kPlanesOfBlock;
    const int end = min(first + kPlanesOfBlock, grid.nz);
    const bool in_halo = tx == 0 || tx == kPlaneTile - 1 || ty == 0 || ty == kPlaneTile - 1;

    // Plane z is in planes[(z + 1) % 3].
    planes[first % 3][ty][tx] = grid.has(x, y, first - 1) ? in[grid.index(x, y, first - 1)] : 0.0f;
    planes[(first + 1) % 3][ty][tx] = grid.has(x, y, first) ? in[grid.index(x, y, first)] : 0.0f;
    for (int z = first; z < end; ++z) {
        const auto& below = planes[z % 3];
        const auto& current = planes[(z + 1) % 3];
        auto& above = planes[(z + 2) % 3];
        above[ty][tx] = grid.has(x, y, z + 1) ? in[grid.index(x, y, z + 1)] : 0.0f;
        __syncthreads();  // three planes are complete
        if (!in_halo && grid.has(x, y, z)) {
            float value = current[ty][tx];
            if (grid.inside(x, y, z)) {
                value = weighted_sum(k, value, current[ty][tx - 1], current[ty][tx + 1], current[ty - 1][tx],
                                     current[ty + 1][tx], below[ty][tx], above[ty][tx]);
            }
            out[grid.index(x, y, z)] = value;
        }
        // This barrier is as in the book, where the planes are copied. With a ring of planes it is
        // not needed, because the next store goes to the lowest plane, of which a thread reads only
        // its own cell.
        __syncthreads();
    }
}

inline void launch_coarsened_z(const float* in, float* out, const Grid& grid, const Seven& k,
                               cudaStream_t stream) {
    const dim3 blocks(blocks_along(grid.nx, kInnerPlaneTile), blocks_along(grid.ny, kInnerPlaneTile),
                      blocks_along(grid.nz, kPlanesOfBlock));
    const dim3 threads(kPlaneTile, kPlaneTile);
    stencil_coarsened_z<<<blocks, threads, 0, stream>>>(in, out, grid, k);
}

// Idea: register tiling. Only the thread of the same column reads the cells below and above, so
// they stay in registers: three values that move down by one with every plane.
// Cost removed: two thirds of the shared memory, and three of seven reads from it: below, above and
// the cell itself.
// Still limits it: latency of 4-byte loads and of two barriers per plane, where warps spend 39 % of
// their time (counters: L2 59 % busy, DRAM 35 %). Only one plane of the block is in flight: the
// next loads follow the second barrier.
__global__ void stencil_register_tiled(const float* in, float* out, Grid grid, Seven k) {
    __shared__ float current[kPlaneTile][kPlaneTile];
    const int tx = static_cast<int>(threadIdx.x);
    const int ty = static_cast<int>(threadIdx.y);
    const int x = static_cast<int>(blockIdx.x) * kInnerPlaneTile + tx - 1;
    const int y = static_cast<int>(blockIdx.y) * kInnerPlaneTile + ty - 1;
    const int first = static_cast<int>(blockIdx.z) * kPlanesOfBlock;
    const int end = min(first + kPlanesOfBlock, grid.nz);
    const bool in_halo = tx == 0 || tx == kPlaneTile - 1 || ty == 0 || ty == kPlaneTile - 1;

    float below = grid.has(x, y, first - 1) ? in[grid.index(x, y, first - 1)] : 0.0f;
    float centre = grid.has(x, y, first) ? in[grid.index(x, y, first)] : 0.0f;
    for (int z = first; z < end; ++z) {
        const float above = grid.has(x, y, z + 1) ? in[grid.index(x, y, z + 1)] : 0.0f;
        current[ty][tx] = centre;
        __syncthreads();  // the plane is complete
        if (!in_halo && grid.has(x, y, z)) {
            float value = centre;
            if (grid.inside(x, y, z)) {
                value = weighted_sum(k, centre, current[ty][tx - 1], current[ty][tx + 1], current[ty - 1][tx],
                                     current[ty + 1][tx], below, above);
            }
            out[grid.index(x, y, z)] = value;
        }
        __syncthreads();  // the plane may be overwritten
        below = centre;
        centre = above;
    }
}

inline void launch_register_tiled(const float* in, float* out, const Grid& grid, const Seven& k,
                                  cudaStream_t stream) {
    const dim3 blocks(blocks_along(grid.nx, kInnerPlaneTile), blocks_along(grid.ny, kInnerPlaneTile),
                      blocks_along(grid.nz, kPlanesOfBlock));
    const dim3 threads(kPlaneTile, kPlaneTile);
    stencil_register_tiled<<<blocks, threads, 0, stream>>>(in, out, grid, k);
}

}  // namespace day11
