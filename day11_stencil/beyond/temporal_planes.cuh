// Day 11, beyond: temporal blocking in 3D, where the front of `streaming` is a plane. Read
// temporal.cuh first.
#pragma once

#include <limits>

#include "common/device/launch.hpp"
#include "common/device/ptx.cuh"
#include "register_tiled_float4.cuh"  // weighted_sums
#include "ring.cuh"                   // copy_quad, clear
#include "temporal.cuh"               // kHaloCells

namespace day11 {

// A front of planes: a block's tile of 128 x kRows * kWarps cells, with the halo. Sweep 0 is a ring
// of planes that are copied ahead. Of the other sweeps, the first row and the last row of each
// warp's part are in shared memory, because the adjacent warps need them.
template <int kSweeps, int kRows, int kWarps, int kAhead>
struct Front {
    static_assert(kSweeps > 1, "one sweep needs no front");
    static constexpr int kTileRows = kRows * kWarps;
    static constexpr int kHalo = kHaloCells<kSweeps>;  // along x
    static constexpr int kInnerCols = kWarpCells - 2 * kHalo;
    static constexpr int kInnerRows = kTileRows - 2 * kSweeps;
    static_assert(kInnerCols > 0 && kInnerRows > 0, "the halo leaves nothing");
    static constexpr int kSlots = kAhead + 3;

    float slot[kSlots][kTileRows][kWarpCells];
    float edges[2][kSweeps - 1][kWarps][2][kWarpCells];  // of even and odd steps; sweep; warp; first, last
};

// The new plane of a sweep, from the three planes of the sweep before it. `back_row` and
// `front_row` are the rows beside the own ones.
template <bool kAligned, int kRows>
__device__ __forceinline__ void new_plane(Quad (&result)[kRows], const Quad (&below)[kRows],
                                          const Quad (&centre)[kRows], const Quad (&above)[kRows],
                                          const Quad& back_row, const Quad& front_row, const Grid& grid,
                                          const Seven& k, int x, int y, int z) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const float left = __shfl_up_sync(course::kWholeWarp, centre[r].value[kLaneCells - 1], 1);
        const float right = __shfl_down_sync(course::kWholeWarp, centre[r].value[0], 1);
        result[r] = weighted_sums(k, centre[r], left, right, r > 0 ? centre[r - 1] : back_row,
                                  r < kRows - 1 ? centre[r + 1] : front_row, below[r], above[r]);
        const bool row_inside = z > 0 && z < grid.nz - 1 && y + r > 0 && y + r < grid.ny - 1;
        keep_boundary<kAligned>(result[r], centre[r], row_inside, x, grid.nx);
    }
}

// Idea: streaming in 3D. A block marches along z; registers hold the last two planes of sweeps 1 to
// kSweeps - 1. Neighbours along x come from lanes, those along y from the own registers and,
// between warps, from shared memory.
// Cost removed: kSweeps - 1 of kSweeps trips through memory, with one barrier per plane for all
// sweeps.
// Still limits it: registers. They limit the tile size, and adjacent blocks both compute the halo.
template <int kSweeps, int kRows, int kWarps, int kAhead, int kBlocks, bool kAligned>
__global__ __launch_bounds__(32 * kWarps, kBlocks) void stencil_stream_planes(const float* __restrict__ in,
                                                                              float* __restrict__ out,
                                                                              Grid grid, Seven k,
                                                                              int planes) {
    using Tile = Front<kSweeps, kRows, kWarps, kAhead>;
    extern __shared__ float4 shared[];
    Tile& front = *reinterpret_cast<Tile*>(shared);
    const int lane = static_cast<int>(threadIdx.x);
    const int warp = static_cast<int>(threadIdx.y);
    const int col = lane * kLaneCells;
    const int tile_y = static_cast<int>(blockIdx.y) * Tile::kInnerRows - kSweeps;
    const int x = static_cast<int>(blockIdx.x) * Tile::kInnerCols - Tile::kHalo + col;
    const int y = tile_y + warp * kRows;
    const int first = static_cast<int>(blockIdx.z) * planes;
    const int end = min(first + planes, grid.nz);
    const bool stores = col >= Tile::kHalo && col < kWarpCells - Tile::kHalo;

    const auto copy = [&](int z, int slot) {
        if (z >= 0 && z < min(end + kSweeps, grid.nz)) {
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                if (y + r >= 0 && y + r < grid.ny)
                    copy_quad<kAligned>(&front.slot[slot][warp * kRows + r][col],
                                        in + grid.index(0, y + r, z), x, grid.nx);
            }
        }
        course::ptx::cp_async_commit();
    };
    const auto load = [&](Quad(&plane)[kRows], int slot) {
#pragma unroll
        for (int r = 0; r < kRows; ++r)
            plane[r] = Quad::load(&front.slot[slot][warp * kRows + r][col]);
    };
    const auto next_slot = [](int slot) { return slot + 1 == Tile::kSlots ? 0 : slot + 1; };
    // The first and the last row of the tile have no neighbour in it. Any row may replace it,
    // because the error moves inwards by one row per sweep, and those rows are halo, which is not
    // stored.
    const int row_before = max(warp * kRows - 1, 0);
    const int row_behind = min(warp * kRows + kRows, Tile::kTileRows - 1);
    const int warp_before = max(warp - 1, 0);
    const int warp_behind = min(warp + 1, kWarps - 1);

    // The first steps read planes and edges that have not been written yet and are zero. Their
    // results do not reach a cell that is stored.
    clear(front);
    __syncthreads();  // before copies of other threads

    int newest = first - kSweeps;  // plane of sweep 0
    int free_slot = 0;
    for (int z = newest; z < newest + kAhead; ++z) {
        copy(z, free_slot);
        free_slot = next_slot(free_slot);
    }
    Quad before[kSweeps - 1][kRows] = {};  // of sweep t + 1: the two planes before its newest one
    Quad last[kSweeps - 1][kRows] = {};
    int slot_before = Tile::kSlots - 2;
    int slot_last = Tile::kSlots - 1;
    int slot = 0;
#pragma unroll 2
    for (; newest < end + kSweeps; ++newest) {
        course::ptx::cp_async_wait<kAhead - 1>();
        __syncthreads();  // all see the newest plane and the edges; the oldest plane may be overwritten
        copy(newest + kAhead, free_slot);
        free_slot = next_slot(free_slot);

        // Sweep 1 gets plane newest - 1, sweep 2 plane newest - 2, and so on.
        Quad plane[kRows];
        {
            Quad below[kRows], centre[kRows], above[kRows];
            load(below, slot_before);
            load(centre, slot_last);
            load(above, slot);
            new_plane<kAligned>(
                plane, below, centre, above, Quad::load(&front.slot[slot_last][row_before][col]),
                Quad::load(&front.slot[slot_last][row_behind][col]), grid, k, x, y, newest - 1);
        }
        // last[t] is the centre plane. It was computed in the step before, so its edge rows are in
        // the other half of `edges`, and the barrier above has made them visible. This step stores
        // the edges of the newest plane in its own half. So one barrier per step serves all sweeps.
#pragma unroll
        for (int t = 0; t < kSweeps - 1; ++t) {
            const auto& read = front.edges[(newest & 1) ^ 1][t];
            auto& written = front.edges[newest & 1][t];
            plane[0].store(&written[warp][0][col]);
            plane[kRows - 1].store(&written[warp][1][col]);
            Quad next[kRows];
            new_plane<kAligned>(next, before[t], last[t], plane, Quad::load(&read[warp_before][1][col]),
                                Quad::load(&read[warp_behind][0][col]), grid, k, x, y, newest - t - 2);
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                before[t][r] = last[t][r];
                last[t][r] = plane[r];
                plane[r] = next[r];
            }
        }
        const int z = newest - kSweeps;
        if (z >= first && stores) {
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                const int row = warp * kRows + r;
                if (row >= kSweeps && row < Tile::kTileRows - kSweeps && y + r < grid.ny)
                    store_quad<kAligned>(out + grid.index(0, y + r, z), x, grid.nx, plane[r]);
            }
        }
        slot_before = slot_last;
        slot_last = slot;
        slot = next_slot(slot);
    }
}

constexpr unsigned kPlaneSweeps = 4;  // sweeps of a full trip
constexpr int kFrontRows = 3;
constexpr int kFrontWarps = 16;
constexpr int kFrontAhead = 1;

template <int kSweeps, bool kAligned>
void launch_stream_planes(const float* in, float* out, const Grid& grid, const Seven& k,
                          cudaStream_t stream) {
    using Tile = Front<kSweeps, kFrontRows, kFrontWarps, kFrontAhead>;
    const unsigned across = blocks_along(grid.nx, Tile::kInnerCols);
    const unsigned down = blocks_along(grid.ny, Tile::kInnerRows);
    // Into how many parts is z cut? More parts keep more SMs busy, but each part has 2 * kSweeps
    // planes of halo. A block takes a step per plane, and an SM runs one block at a time.
    const std::size_t at_a_time = course::multiprocessors();
    int planes = grid.nz;
    std::size_t fewest_steps = std::numeric_limits<std::size_t>::max();
    for (int parts = 1; parts <= 16; ++parts) {
        const int of_part = course::ceil_div(grid.nz, parts);
        const std::size_t waves = course::ceil_div<std::size_t>(
            std::size_t{across} * down * blocks_along(grid.nz, of_part), at_a_time);
        const std::size_t steps = waves * static_cast<std::size_t>(of_part + 2 * kSweeps);
        if (steps >= fewest_steps) continue;
        fewest_steps = steps;
        planes = of_part;
    }
    course::launch(stencil_stream_planes<kSweeps, kFrontRows, kFrontWarps, kFrontAhead, 1, kAligned>,
                   {.grid = dim3(across, down, blocks_along(grid.nz, planes)),
                    .block = dim3(course::kWarpSize, kFrontWarps),
                    .shared_bytes = sizeof(Tile),
                    .stream = stream},
                   in, out, grid, k, planes);
}

}  // namespace day11
