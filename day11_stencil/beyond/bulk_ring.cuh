// Day 11, beyond: the ring of planes of ring.cuh, filled by bulk copies (Hopper). Day 41 explains
// bulk copies, mbarriers and their phases.
#pragma once

#include "common/device/launch.hpp"
#include "common/device/ptx_hopper.cuh"
#include "ring.cuh"

namespace day11 {

template <class Planes>
struct BulkRing {
    Planes ring;
    course::ptx::MBarrier filled[Planes::kSlots];
};

// Idea: with one instruction, a lane starts the copy of a whole row of up to 544 bytes. The copy
// engine does the rest. An mbarrier per slot counts the bytes that have arrived.
// Cost removed: the instructions of cp.async, one for every 16 bytes, and their addresses.
// Still limits it: L2 (counters: 87 % busy, DRAM 71 %). async_ring is about as fast.
template <int kRadius, int kRows, int kWarps, int kAhead, int kBlocks>
__global__ __launch_bounds__(32 * kWarps, kBlocks) void stencil_bulk_ring(const float* __restrict__ in,
                                                                          float* __restrict__ out, Grid grid,
                                                                          Star<kRadius> star, int planes) {
    using Planes = Ring<kRadius, kRows, kWarps, kAhead>;
    extern __shared__ float4 shared[];
    auto& memory = *reinterpret_cast<BulkRing<Planes>*>(shared);
    Planes& ring = memory.ring;
    auto& filled = memory.filled;
    const int lane = static_cast<int>(threadIdx.x);
    const int warp = static_cast<int>(threadIdx.y);
    const int tile_x = static_cast<int>(blockIdx.x) * kWarpCells;
    const int tile_y = static_cast<int>(blockIdx.y) * Planes::kTileRows;
    const int x = tile_x + lane * kLaneCells;
    const int y = tile_y + warp * kRows;
    const int first = static_cast<int>(blockIdx.z) * planes;
    const int end = min(first + planes, grid.nz);

    // The part of the tile and its halo that lies in the grid.
    const int left = max(tile_x - kLaneCells, 0);
    const int right = min(tile_x + kWarpCells + kLaneCells, grid.nx);
    const int top = max(tile_y - kRadius, 0);
    const int bottom = min(tile_y + Planes::kTileRows + kRadius, grid.ny);
    const auto row_bytes = static_cast<unsigned>((right - left) * static_cast<int>(sizeof(float)));

    const auto copy = [&](int plane, int slot) {
        if (warp != 0 || plane < 0 || plane >= min(end + kRadius, grid.nz)) return;
        if (lane == 0)
            course::ptx::mbarrier_arrive_expect(&filled[slot],
                                                row_bytes * static_cast<unsigned>(bottom - top));
        __syncwarp();  // the bytes are announced before they arrive
        for (int row = top + lane; row < bottom; row += course::kWarpSize)
            course::ptx::bulk_load(&ring.slot[slot][row - tile_y + kRadius][left - tile_x + kLaneCells],
                                   in + grid.index(left, row, plane), row_bytes, &filled[slot]);
    };
    const auto next_slot = [](int slot) { return slot + 1 == Planes::kSlots ? 0 : slot + 1; };

    if (lane == 0 && warp == 0) {
        for (auto& barrier : filled)
            course::ptx::mbarrier_init(&barrier, 1);
        course::ptx::fence_mbarrier_init();
    }
    clear(ring);
    course::ptx::fence_proxy_async();  // before the copies that follow
    __syncthreads();                   // the barriers are initialised for all threads

    int newest = first - kRadius;
    int slot = 0;
    int free_slot = 0;
    // Planes below the grid (z < 0) are not copied. So their slots are one phase behind the others,
    // and are waited for with the opposite parity.
    const int not_copied = max(-newest, 0);
    unsigned parity = 0;
    for (int plane = newest; plane < newest + kAhead; ++plane) {
        copy(plane, free_slot);
        free_slot = next_slot(free_slot);
    }
    Column<kRadius, kRows, kWarps, kAhead> column = {};
#pragma unroll(2 * kRadius + 1)
    for (; newest < end + kRadius; ++newest) {
        if (newest >= 0 && newest < grid.nz)
            course::ptx::mbarrier_wait(&filled[slot], slot < not_copied ? parity ^ 1u : parity);
        __syncthreads();  // the oldest plane may be overwritten
        copy(newest + kAhead, free_slot);
        free_slot = next_slot(free_slot);
        column.advance(ring, slot);
        if (newest >= first + kRadius) {
            const int current = slot >= kRadius ? slot - kRadius : slot - kRadius + Planes::kSlots;
            column.template compute<true>(ring, current, out, grid, star, x, y, newest - kRadius);
        }
        slot = next_slot(slot);
        if (slot == 0) parity ^= 1u;
    }
}

// Rows of the grid are 16-byte aligned, and no extent is 0.
template <int kRadius>
void launch_bulk_ring(const float* in, float* out, const Grid& grid, const Star<kRadius>& star,
                      cudaStream_t stream) {
    using Shape = RingShape<kRadius>;
    using Planes = Ring<kRadius, Shape::kRows, Shape::kWarps, Shape::kAhead>;
    course::launch(stencil_bulk_ring<kRadius, Shape::kRows, Shape::kWarps, Shape::kAhead, Shape::kBlocks>,
                   {.grid = dim3(blocks_along(grid.nx, kWarpCells), blocks_along(grid.ny, Planes::kTileRows),
                                 blocks_along(grid.nz, Shape::kPlanes)),
                    .block = dim3(course::kWarpSize, Shape::kWarps),
                    .shared_bytes = sizeof(BulkRing<Planes>),
                    .stream = stream},
                   in, out, grid, star, Shape::kPlanes);
}

}  // namespace day11
