// Day 11, beyond: temporal blocking. Several sweeps in one trip through memory.
//
// After t sweeps a cell depends on the cells around it up to a distance of t. So a tile that was
// loaded with a halo of T cells is right after T sweeps, except for its halo. Adjacent tiles
// overlap by 2 T cells, and both compute the cells there.
//
//     overlapped_tile   a square tile stays in shared memory for T sweeps
//     streaming         the tile is a front that moves through the grid. Sweep t is one plane (in 2D:
//                       one row) behind sweep t - 1, and needs only the last planes of each sweep
//
//                 front  ->
//     sweep 0   . . . . . . . a b c      c is loaded
//     sweep 1   . . . . . . a b c        from a, b, c of sweep 0
//     sweep 2   . . . . . a b c          from a, b, c of sweep 1; stored, if T = 2
//
// Both are 2D here. streaming in 3D is in temporal_planes.cuh.
#pragma once

#include <algorithm>

#include "common/device/grid.hpp"
#include "quads.cuh"
#include "shapes.cuh"  // Five, inside_plane

namespace day11 {

constexpr int kSquare = 64;            // cells of a tile with its halo, along x and y
constexpr int kSquareThreads = 16;     // rows of threads; 32 threads each
constexpr unsigned kSquareSweeps = 4;  // sweeps of a full trip

// Idea: overlapped tiles. A block loads 64 x 64 cells of a plane, does `sweeps` sweeps between two
// buffers in shared memory, and stores the cells that are right.
// Cost removed: sweeps - 1 of `sweeps` trips through global memory.
// Still limits it: issue slots (counters: 94 % busy, shared memory 43 %). A cell costs five reads,
// a write, bounds and five multiply-adds, and adjacent blocks both compute the halo.
__global__ __launch_bounds__(32 * kSquareThreads) void stencil_overlapped_tile(const float* in, float* out,
                                                                               Grid grid, Five k,
                                                                               int sweeps) {
    __shared__ float buffers[2][kSquare][kSquare];
    const int inner = kSquare - 2 * sweeps;
    const int tile_x = static_cast<int>(blockIdx.x) * inner - sweeps;
    const int tile_y = static_cast<int>(blockIdx.y) * inner - sweeps;
    const int tx = static_cast<int>(threadIdx.x);
    const int ty = static_cast<int>(threadIdx.y);
    for (int r = ty; r < kSquare; r += kSquareThreads) {
        for (int c = tx; c < kSquare; c += 32) {
            const bool there = grid.has(tile_x + c, tile_y + r, 0);
            buffers[0][r][c] = there ? in[grid.index(tile_x + c, tile_y + r, 0)] : 0.0f;
        }
    }
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        const auto& from = buffers[sweep % 2];
        auto& to = buffers[(sweep + 1) % 2];
        __syncthreads();  // the sweep before is complete
        for (int r = ty; r < kSquare; r += kSquareThreads) {
            for (int c = tx; c < kSquare; c += 32) {
                const bool on_edge = r == 0 || r == kSquare - 1 || c == 0 || c == kSquare - 1;
                const float centre = from[r][c];
                to[r][c] = on_edge || !inside_plane(grid, tile_x + c, tile_y + r)
                               ? centre
                               : weighted_sum(k, centre, from[r][c - 1], from[r][c + 1], from[r - 1][c],
                                              from[r + 1][c]);
            }
        }
    }
    __syncthreads();  // the last sweep is complete
    for (int r = sweeps + ty; r < kSquare - sweeps; r += kSquareThreads) {
        for (int c = sweeps + tx; c < kSquare - sweeps; c += 32) {
            if (grid.has(tile_x + c, tile_y + r, 0))
                out[grid.index(tile_x + c, tile_y + r, 0)] = buffers[sweeps % 2][r][c];
        }
    }
}

inline void launch_overlapped_tile(const float* in, float* out, const Grid& grid, const Five& k, int sweeps,
                                   cudaStream_t stream) {
    const int inner = kSquare - 2 * sweeps;
    const dim3 blocks(blocks_along(grid.nx, inner), blocks_along(grid.ny, inner));
    const dim3 threads(32, kSquareThreads);
    stencil_overlapped_tile<<<blocks, threads, 0, stream>>>(in, out, grid, k, sweeps);
}

// How far the strips of adjacent warps overlap on either side: at least kSweeps cells, in whole
// quads.
template <int kSweeps>
constexpr int kHaloCells = (kSweeps + kLaneCells - 1) / kLaneCells* kLaneCells;

// Advances the front by a row. On entry, `row` is row `newest` of sweep 0; on return, it is row
// newest - kSweeps of the last sweep. On the way, sweep t + 1 gets its row newest - t - 1.
// before[t] and last[t] are the two rows of sweep t that come before its newest one.
template <int kSweeps, bool kAligned>
__device__ __forceinline__ void advance_rows(Quad (&before)[kSweeps], Quad (&last)[kSweeps], Quad& row,
                                             const Grid& grid, const Five& k, int x, int newest) {
#pragma unroll
    for (int t = 0; t < kSweeps; ++t) {
        const Quad centre = last[t];
        const float left = __shfl_up_sync(course::kWholeWarp, centre.value[kLaneCells - 1], 1);
        const float right = __shfl_down_sync(course::kWholeWarp, centre.value[0], 1);
        Quad next;
#pragma unroll
        for (int j = 0; j < kLaneCells; ++j)
            next.value[j] = weighted_sum(k, centre.value[j], j > 0 ? centre.value[j - 1] : left,
                                         j < kLaneCells - 1 ? centre.value[j + 1] : right, before[t].value[j],
                                         row.value[j]);
        const int y = newest - t - 1;
        keep_boundary<kAligned>(next, centre, y > 0 && y < grid.ny - 1, x, grid.nx);
        before[t] = centre;
        last[t] = row;
        row = next;
    }
}

constexpr int kStripWarps = 4;  // warps of a block; each has a strip and is independent
constexpr int kRowsAhead = 2;   // rows in flight

// Idea: streaming. A warp marches along y with a strip of 128 cells and keeps two rows of every
// sweep in registers. Neighbours along x are in the adjacent lanes.
// Cost removed: shared memory and barriers. Only the strips' sides overlap, and the ends of the
// march.
// Still limits it: registers. Each sweep needs eight, so the number of sweeps is limited.
template <int kSweeps, bool kAligned>
__global__ __launch_bounds__(32 * kStripWarps) void stencil_stream_rows(const float* __restrict__ in,
                                                                        float* __restrict__ out, Grid grid,
                                                                        Five k, int rows) {
    constexpr int kHalo = kHaloCells<kSweeps>;
    constexpr int kInner = kWarpCells - 2 * kHalo;
    const int lane = static_cast<int>(threadIdx.x);
    const int strip = static_cast<int>(blockIdx.x) * kStripWarps + static_cast<int>(threadIdx.y);
    const int strip_x = strip * kInner - kHalo;
    const int x = strip_x + lane * kLaneCells;
    const int first = static_cast<int>(blockIdx.y) * rows;
    const int end = min(first + rows, grid.ny);
    if (strip_x + kHalo >= grid.nx) return;  // the whole warp

    const bool stores = lane * kLaneCells >= kHalo && lane * kLaneCells < kWarpCells - kHalo;
    const auto load = [&](int y) {
        return y >= 0 && y < grid.ny ? load_quad<kAligned>(in + grid.index(0, y, 0), x, grid.nx) : Quad{};
    };
    Quad before[kSweeps] = {};
    Quad last[kSweeps] = {};
    Quad ahead[kRowsAhead];
#pragma unroll
    for (int i = 0; i < kRowsAhead; ++i)
        ahead[i] = load(first - kSweeps + i);
#pragma unroll 2
    for (int newest = first - kSweeps; newest < end + kSweeps; ++newest) {
        Quad row = ahead[0];
#pragma unroll
        for (int i = 0; i + 1 < kRowsAhead; ++i)
            ahead[i] = ahead[i + 1];
        ahead[kRowsAhead - 1] = load(newest + kRowsAhead);
        advance_rows<kSweeps, kAligned>(before, last, row, grid, k, x, newest);
        const int y = newest - kSweeps;
        if (y >= first && stores) store_quad<kAligned>(out + grid.index(0, y, 0), x, grid.nx, row);
    }
}

constexpr unsigned kRowSweeps = 8;     // sweeps of a full trip
constexpr unsigned kFewRowSweeps = 4;  // and of the one after it

template <int kSweeps, bool kAligned>
void launch_stream_rows(const float* in, float* out, const Grid& grid, const Five& k, cudaStream_t stream) {
    constexpr auto kKernel = stencil_stream_rows<kSweeps, kAligned>;
    const unsigned strips = blocks_along(grid.nx, kStripWarps * (kWarpCells - 2 * kHaloCells<kSweeps>));
    // As many marches as can be resident, but each at least four times as long as its halo.
    const unsigned marches = std::max(course::resident_blocks(kKernel, 32 * kStripWarps) / strips, 1u);
    const int rows = std::max(course::ceil_div(grid.ny, static_cast<int>(marches)), 8 * kSweeps);
    const dim3 blocks(strips, blocks_along(grid.ny, rows));
    const dim3 threads(32, kStripWarps);
    kKernel<<<blocks, threads, 0, stream>>>(in, out, grid, k, rows);
}

}  // namespace day11
