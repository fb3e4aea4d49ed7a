// Day 11, beyond: register tiling without shared memory.
#pragma once

#include <algorithm>

#include "quads.cuh"
#include "stencil.cuh"

namespace day11 {

// The new values of a quad, as if none were on the boundary. `left` and `right` are the cells
// beside it.
__device__ inline Quad weighted_sums(const Seven& k, const Quad& centre, float left, float right,
                                     const Quad& back, const Quad& front, const Quad& below,
                                     const Quad& above) {
    Quad sums;
#pragma unroll
    for (int j = 0; j < kLaneCells; ++j)
        sums.value[j] = weighted_sum(k, centre.value[j], j > 0 ? centre.value[j - 1] : left,
                                     j < kLaneCells - 1 ? centre.value[j + 1] : right, back.value[j],
                                     front.value[j], below.value[j], above.value[j]);
    return sums;
}

constexpr int kThreadRows = 2;  // rows of a thread, neighbours along y

// Idea: four cells of two rows per thread. A warp marches along z with 128 cells of these rows.
// Neighbours along x come from the adjacent lane, those along y from the thread's other row or by
// another load, usually from the L1 cache, because an adjacent warp loads the same row.
// Cost removed: three of four load instructions, shared memory, and all barriers.
// Still limits it: memory bandwidth, nearly. Rows at the edge of a block and planes at the ends of
// a march are loaded twice.
//
// Blocks have 32 x (warps along x) x (warps along y) threads: threadIdx.y and threadIdx.z count
// warps. kAligned: as for load_quad. With the loop unrolled three times, the planes of a march need
// not be moved from register to register. Unrolled six times, the kernel for unaligned rows no
// longer fits into 64 registers per thread, and spills.
template <bool kAligned>
__global__ __launch_bounds__(1024) void stencil_register_tiled_float4(const float* __restrict__ in,
                                                                      float* __restrict__ out, Grid grid,
                                                                      Seven k, int planes) {
    const int lane = static_cast<int>(threadIdx.x);
    const int x = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y) * kWarpCells + lane * kLaneCells;
    const int y = static_cast<int>(blockIdx.y * blockDim.z + threadIdx.z) * kThreadRows;
    const int first = static_cast<int>(blockIdx.z) * planes;
    const int end = min(first + planes, grid.nz);
    if (y >= grid.ny) return;  // the whole warp

    const auto load = [&](int row, int z) {
        const bool there = row >= 0 && row < grid.ny && z >= 0 && z < grid.nz;
        return there ? load_quad<kAligned>(in + grid.index(0, row, z), x, grid.nx) : Quad{};
    };
    Quad below[kThreadRows], centre[kThreadRows], above[kThreadRows];
#pragma unroll
    for (int r = 0; r < kThreadRows; ++r) {
        below[r] = load(y + r, first - 1);
        centre[r] = load(y + r, first);
    }
    constexpr bool kStreaming = true;  // the caches should keep what is read again: halos
#pragma unroll 3
    for (int z = first; z < end; ++z) {
#pragma unroll
        for (int r = 0; r < kThreadRows; ++r)
            above[r] = load(y + r, z + 1);
        const Quad back = load(y - 1, z);
        const Quad front = load(y + kThreadRows, z);
#pragma unroll
        for (int r = 0; r < kThreadRows; ++r) {
            float left = __shfl_up_sync(course::kWholeWarp, centre[r].value[kLaneCells - 1], 1);
            float right = __shfl_down_sync(course::kWholeWarp, centre[r].value[0], 1);
            if (y + r >= grid.ny) continue;  // the whole warp
            if (lane == 0 && x > 0 && x < grid.nx) left = in[grid.index(x - 1, y + r, z)];
            if (lane == 31 && x + kLaneCells < grid.nx) right = in[grid.index(x + kLaneCells, y + r, z)];
            Quad result = weighted_sums(k, centre[r], left, right, r > 0 ? centre[r - 1] : back,
                                        r < kThreadRows - 1 ? centre[r + 1] : front, below[r], above[r]);
            const bool row_inside = y + r > 0 && y + r < grid.ny - 1 && z > 0 && z < grid.nz - 1;
            keep_boundary<kAligned>(result, centre[r], row_inside, x, grid.nx);
            store_quad<kAligned, kStreaming>(out + grid.index(0, y + r, z), x, grid.nx, result);
            below[r] = centre[r];
        }
#pragma unroll
        for (int r = 0; r < kThreadRows; ++r)
            centre[r] = above[r];
    }
}

// kWarps: of a block. kPlanes: that it computes, one after the other. The defaults were the fastest
// for 1024^3 cells.
template <bool kAligned, int kWarps = 32, int kPlanes = 32>
void launch_register_tiled_float4(const float* in, float* out, const Grid& grid, const Seven& k,
                                  cudaStream_t stream) {
    // As many warps as possible are side by side along x, because there each edge of a block costs
    // a sector of 32 bytes for one cell.
    const int warps_x = std::min(static_cast<int>(blocks_along(grid.nx, kWarpCells)), 8);
    const int across = std::min(warps_x > 4 ? 8 : warps_x > 2 ? 4 : warps_x, kWarps);
    const int down = kWarps / across;
    const dim3 blocks(blocks_along(grid.nx, kWarpCells * across), blocks_along(grid.ny, kThreadRows * down),
                      blocks_along(grid.nz, kPlanes));
    const dim3 threads(course::kWarpSize, static_cast<unsigned>(across), static_cast<unsigned>(down));
    stencil_register_tiled_float4<kAligned><<<blocks, threads, 0, stream>>>(in, out, grid, k, kPlanes);
}

}  // namespace day11
