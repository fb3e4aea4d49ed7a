// Day 11, beyond: a ring of planes in shared memory, for stars of any radius.
//
//          planes of the ring, while plane z is computed (radius 1, 3 planes ahead)
//     slot   | z     | z + 1 | z + 2 | z + 3 | z + 4 |
//              ^       ^       `-------------------- copies in flight
//              |       newest: each thread moves its own cells of it to registers
//              neighbours along x and y are read here
//
// A block marches along z with a tile of 128 x (kRows * kWarps) cells and a halo around it. Planes
// are copied asynchronously, kAhead planes before they are needed.
#pragma once

#include <algorithm>

#include "common/device/launch.hpp"
#include "common/device/ptx.cuh"
#include "quads.cuh"

namespace day11 {

// The constants of a star: the cell; then for x - 1, x + 1, x - 2, x + 2, ...; the same along y;
// and along z.
template <int kRadius>
struct Star {
    float k[1 + 6 * kRadius];
};

// kRows: rows of a thread, neighbours along y. kWarps: warps of a block. kAhead: planes in flight.
template <int kRadius, int kRows, int kWarps, int kAhead>
struct Ring {
    static_assert(kRadius <= kLaneCells, "the halo along x is one quad wide");
    static constexpr int kTileRows = kRows * kWarps;
    static constexpr int kPitch = kLaneCells + kWarpCells + kLaneCells;  // cells of a row with its halo
    static constexpr int kHaloRows = kTileRows + 2 * kRadius;
    static constexpr int kSlots = kAhead + kRadius + 1;
    float slot[kSlots][kHaloRows][kPitch];
};

// The fastest values of those tried on an H200. kPlanes: planes that a block computes, one after
// the other. kBlocks: resident blocks of an SM.
template <int kRadius>
struct RingShape {
    static constexpr int kRows = 2;
    static constexpr int kWarps = kRadius == 1 ? 8 : 16;
    static constexpr int kAhead = 2;
    static constexpr int kBlocks = kRadius == 1 ? 2 : 1;
    static constexpr int kPlanes = kRadius == 1 ? 64 : 128;
};

// One thread's part of a ring: a column of kRows quads of each plane.
template <int kRadius, int kRows, int kWarps, int kAhead>
struct Column {
    using Planes = Ring<kRadius, kRows, kWarps, kAhead>;
    static constexpr int kWindow = 2 * kRadius + 1;

    Quad window[kWindow][kRows];  // own cells of planes z - kRadius .. z + kRadius

    // Moves the window up by one plane. `slot` has the newest one.
    __device__ void advance(const Planes& ring, int slot) {
        const int row = kRadius + static_cast<int>(threadIdx.y) * kRows;
        const int col = kLaneCells + static_cast<int>(threadIdx.x) * kLaneCells;
#pragma unroll
        for (int plane = 0; plane + 1 < kWindow; ++plane) {
#pragma unroll
            for (int r = 0; r < kRows; ++r)
                window[plane][r] = window[plane + 1][r];
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r)
            window[kWindow - 1][r] = Quad::load(&ring.slot[slot][row + r][col]);
    }

    // Stores the new values of plane z, whose old ones are in `slot`. (x, y): the first own cell.
    template <bool kAligned>
    __device__ void compute(const Planes& ring, int slot, float* out, const Grid& grid,
                            const Star<kRadius>& star, int x, int y, int z) const {
        const int row = kRadius + static_cast<int>(threadIdx.y) * kRows;
        const int col = kLaneCells + static_cast<int>(threadIdx.x) * kLaneCells;
        Quad along_y[kRows + 2 * kRadius];  // rows y - kRadius .. of the own columns
#pragma unroll
        for (int r = 0; r < kRows + 2 * kRadius; ++r) {
            const bool own = r >= kRadius && r < kRadius + kRows;
            along_y[r] =
                own ? window[kRadius][r - kRadius] : Quad::load(&ring.slot[slot][row - kRadius + r][col]);
        }
        const bool plane_inside = z >= kRadius && z < grid.nz - kRadius;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            // Neighbours along x are up to four cells away, in the quad before or after.
            const Quad before = Quad::load(&ring.slot[slot][row + r][col - kLaneCells]);
            const Quad behind = Quad::load(&ring.slot[slot][row + r][col + kLaneCells]);
            float along_x[3 * kLaneCells];
#pragma unroll
            for (int j = 0; j < kLaneCells; ++j) {
                along_x[j] = before.value[j];
                along_x[kLaneCells + j] = window[kRadius][r].value[j];
                along_x[2 * kLaneCells + j] = behind.value[j];
            }
            const bool row_inside = plane_inside && y + r >= kRadius && y + r < grid.ny - kRadius;
            Quad result;
#pragma unroll
            for (int j = 0; j < kLaneCells; ++j) {
                const float centre = along_x[kLaneCells + j];
                const float* k = star.k;
                float sum = *k++ * centre;
#pragma unroll
                for (int d = 1; d <= kRadius; ++d) {
                    sum = fmaf(*k++, along_x[kLaneCells + j - d], sum);
                    sum = fmaf(*k++, along_x[kLaneCells + j + d], sum);
                }
#pragma unroll
                for (int d = 1; d <= kRadius; ++d) {
                    sum = fmaf(*k++, along_y[kRadius + r - d].value[j], sum);
                    sum = fmaf(*k++, along_y[kRadius + r + d].value[j], sum);
                }
#pragma unroll
                for (int d = 1; d <= kRadius; ++d) {
                    sum = fmaf(*k++, window[kRadius - d][r].value[j], sum);
                    sum = fmaf(*k++, window[kRadius + d][r].value[j], sum);
                }
                // A select, not a branch, so that all multiply-adds of the rows can be scheduled
                // together.
                const bool inside = row_inside && x + j >= kRadius && x + j < grid.nx - kRadius;
                result.value[j] = inside ? sum : centre;
            }
            if (y + r < grid.ny) store_quad<kAligned>(out + grid.index(0, y + r, z), x, grid.nx, result);
        }
    }
};

// Starts the copy of the quad at column x of a row of nx cells. Out-of-range cells are not copied.
template <bool kAligned>
__device__ void copy_quad(float* shared, const float* row, int x, int nx) {
    if constexpr (kAligned) {
        if (x >= 0 && x < nx) course::ptx::cp_async_16(shared, row + x);
    } else {
        for (int j = 0; j < kLaneCells; ++j)
            if (x + j >= 0 && x + j < nx) course::ptx::cp_async_4(shared + j, row + x + j);
    }
}

// A warp starts the copy of kWarpCells cells of a row, from column x on. Where quads cannot be
// copied, a lane copies every 32nd cell, so that the requests of the warp are coalesced.
template <bool kAligned>
__device__ void copy_warp_cells(float* shared, const float* row, int lane, int x, int nx) {
    if constexpr (kAligned) {
        copy_quad<true>(shared + lane * kLaneCells, row, x + lane * kLaneCells, nx);
    } else {
        for (int i = lane; i < kWarpCells; i += course::kWarpSize)
            if (x + i >= 0 && x + i < nx) course::ptx::cp_async_4(shared + i, row + x + i);
    }
}

// Zero-fills an object in shared memory. Out-of-range cells are not copied, but the kernels load
// their places with the quads around them. No result depends on these values. They are cleared so
// that a block reads only initialised memory, which an inspection checks. All threads of the block
// call it, and a barrier must follow.
template <class Object>
__device__ void clear(Object& object) {
    static_assert(sizeof(Object) % sizeof(Quad) == 0, "whole quads are stored");
    auto* const floats = reinterpret_cast<float*>(&object);
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    for (std::size_t i = thread * kLaneCells; i < sizeof(Object) / sizeof(float);
         i += blockDim.x * blockDim.y * kLaneCells)
        Quad{}.store(floats + i);
}

// Idea: copy planes ahead with cp.async, which needs no registers for data in flight. A plane is
// read twice: when it is the newest, each thread takes its own cells from it; kRadius planes later
// it provides the neighbours along x and y.
// Cost removed: the latency of loads. kAhead planes are in flight while one is computed, and a
// plane costs one barrier.
// Still limits it: with 7 points memory (counters: DRAM 69 % busy, L2 82 %). The halo, which other
// blocks load too, adds only 5 % to the bytes that DRAM reads. Warps wait at barriers for 23 % of
// their time. With 25 points it is not the barrier.
template <int kRadius, int kRows, int kWarps, int kAhead, int kBlocks, bool kAligned>
__global__ __launch_bounds__(32 * kWarps, kBlocks) void stencil_async_ring(const float* __restrict__ in,
                                                                           float* __restrict__ out, Grid grid,
                                                                           Star<kRadius> star, int planes) {
    using Planes = Ring<kRadius, kRows, kWarps, kAhead>;
    extern __shared__ float4 shared[];
    Planes& ring = *reinterpret_cast<Planes*>(shared);
    const int lane = static_cast<int>(threadIdx.x);
    const int warp = static_cast<int>(threadIdx.y);
    const int tile_x = static_cast<int>(blockIdx.x) * kWarpCells;
    const int tile_y = static_cast<int>(blockIdx.y) * Planes::kTileRows;
    const int x = tile_x + lane * kLaneCells;
    const int y = tile_y + warp * kRows;
    const int first = static_cast<int>(blockIdx.z) * planes;
    const int end = min(first + planes, grid.nz);

    clear(ring);
    __syncthreads();  // before copies of other threads

    // The warps take turns at the rows of a plane. Lanes 0 and 1 also copy the halo along x.
    const auto copy = [&](int plane, int slot) {
        if (plane >= 0 && plane < min(end + kRadius, grid.nz)) {
#pragma unroll
            for (int i = 0; i < (Planes::kHaloRows + kWarps - 1) / kWarps; ++i) {
                const int r = i * kWarps + warp;
                const int from_y = tile_y - kRadius + r;
                if (r >= Planes::kHaloRows || from_y < 0 || from_y >= grid.ny) continue;
                const float* row = in + grid.index(0, from_y, plane);
                copy_warp_cells<kAligned>(&ring.slot[slot][r][kLaneCells], row, lane, tile_x, grid.nx);
                if (lane < 2) {
                    const int from_x = lane == 0 ? tile_x - kLaneCells : tile_x + kWarpCells;
                    copy_quad<kAligned>(&ring.slot[slot][r][lane == 0 ? 0 : kLaneCells + kWarpCells], row,
                                        from_x, grid.nx);
                }
            }
        }
        course::ptx::cp_async_commit();  // a group per plane, even if empty: waiting counts them
    };
    const auto next_slot = [](int slot) { return slot + 1 == Planes::kSlots ? 0 : slot + 1; };

    int newest = first - kRadius;  // the plane that arrives next
    int slot = 0;                  // its slot
    int free_slot = 0;
    for (int plane = newest; plane < newest + kAhead; ++plane) {
        copy(plane, free_slot);
        free_slot = next_slot(free_slot);
    }
    Column<kRadius, kRows, kWarps, kAhead> column = {};
#pragma unroll(2 * kRadius + 1)
    for (; newest < end + kRadius; ++newest) {
        course::ptx::cp_async_wait<kAhead - 1>();
        __syncthreads();  // all threads see the newest plane; the oldest one may be overwritten
        copy(newest + kAhead, free_slot);
        free_slot = next_slot(free_slot);
        column.advance(ring, slot);
        if (newest >= first + kRadius) {
            const int current = slot >= kRadius ? slot - kRadius : slot - kRadius + Planes::kSlots;
            column.template compute<kAligned>(ring, current, out, grid, star, x, y, newest - kRadius);
        }
        slot = next_slot(slot);
    }
}

template <int kRadius, bool kAligned>
void launch_async_ring(const float* in, float* out, const Grid& grid, const Star<kRadius>& star,
                       cudaStream_t stream) {
    using Shape = RingShape<kRadius>;
    using Planes = Ring<kRadius, Shape::kRows, Shape::kWarps, Shape::kAhead>;
    const unsigned across = blocks_along(grid.nx, kWarpCells);
    const unsigned down = blocks_along(grid.ny, Planes::kTileRows);
    int planes = Shape::kPlanes;
    if constexpr (kRadius == 4) {
        // Where all blocks can run at the same time, marches are as long as that allows: halos
        // along z are loaded least often. Those of small grids are short, so that all
        // multiprocessors have one.
        const auto parts = static_cast<int>(course::multiprocessors() / (std::size_t{across} * down));
        if (parts >= 1) planes = std::max(course::ceil_div(grid.nz, parts), kRadius);
    }
    course::launch(
        stencil_async_ring<kRadius, Shape::kRows, Shape::kWarps, Shape::kAhead, Shape::kBlocks, kAligned>,
        {.grid = dim3(across, down, blocks_along(grid.nz, planes)),
         .block = dim3(course::kWarpSize, Shape::kWarps),
         .shared_bytes = sizeof(Planes),
         .stream = stream},
        in, out, grid, star, planes);
}

}  // namespace day11
