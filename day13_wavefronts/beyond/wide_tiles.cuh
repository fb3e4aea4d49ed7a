// Day 13, beyond: shortest paths with 64 vertices in three launches, and 8 x 8 cells per thread.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "wavefronts.cuh"

namespace day13 {

constexpr int kWidePivots = 64;  // vertices k0 to k0 + 63 are allowed in one round

// Idea: the pivot tile in registers, 4 x 4 cells per thread. In step k, the threads that have row k
// and column k pass them on through shared memory, in two buffers by turns.
// Cost removed: most accesses to shared memory: 8 loads for 16 cells, where pivot_tile has three
// loads and a store for each.
// Still limits it: latency. One block works, and all others wait for it: 10 us per round.
__global__ void __launch_bounds__(kThreads* kThreads) wide_pivot_tile(float* distance, int n, int k0) {
    __shared__ float row[2][kWidePivots];
    __shared__ float column[2][kWidePivots];
    const int y = static_cast<int>(threadIdx.y);
    const int x = static_cast<int>(threadIdx.x);
    float cells[kEach][kEach];  // [r][c] is row y + 16 r, column x + 16 c
    for (int r = 0; r < kEach; ++r)
        for (int c = 0; c < kEach; ++c)
            cells[r][c] = load_cell(distance, n, k0 + y + kThreads * r, k0 + x + kThreads * c);
#pragma unroll
    for (int part = 0; part < kEach; ++part) {  // a constant, so that `cells` stays in registers
        for (int owner = 0; owner < kThreads; ++owner) {
            // Step k = 16 part + owner. What the step before has read is in the other buffer.
            const int now = owner % 2;
            for (int c = 0; c < kEach; ++c) {
                if (y == owner) row[now][x + kThreads * c] = cells[part][c];
                if (x == owner) column[now][y + kThreads * c] = cells[c][part];
            }
            __syncthreads();
            for (int r = 0; r < kEach; ++r)
                for (int c = 0; c < kEach; ++c)
                    cells[r][c] =
                        fminf(cells[r][c], column[now][y + kThreads * r] + row[now][x + kThreads * c]);
        }
    }
    for (int r = 0; r < kEach; ++r) {
        for (int c = 0; c < kEach; ++c) {
            const int i = k0 + y + kThreads * r;
            const int j = k0 + x + kThreads * c;
            if (i < n && j < n) distance[std::size_t(i) * n + j] = cells[r][c];
        }
    }
}

// Idea: the pivot tile is finished. A path from one of its vertices that stays in it first, and
// then leaves, consists of a finished path and one edge. So the tile's 64 steps may come in any
// order.
// Cost removed: 64 barriers.
// Still limits it: latency, with 1,024 vertices: 32 blocks for the 132 SMs of an H200.
__global__ void __launch_bounds__(kThreads* kThreads)
    wide_pivot_rows_and_columns(float* distance, int n, int k0) {
    __shared__ float first[kWidePivots][kWidePivots + 1];  // pivot tile and old tile, in either order
    __shared__ float second[kWidePivots][kWidePivots];
    const int y = static_cast<int>(threadIdx.y);
    const int x = static_cast<int>(threadIdx.x);
    const int other = static_cast<int>(blockIdx.x) * kWidePivots;
    if (other == k0) return;
    const int i0 = blockIdx.y == 0 ? k0 : other;
    const int j0 = blockIdx.y == 0 ? other : k0;
    for (int e = y * kThreads + x; e < kWidePivots * kWidePivots; e += kThreads * kThreads) {
        first[e / kWidePivots][e % kWidePivots] =
            load_cell(distance, n, i0 + e / kWidePivots, k0 + e % kWidePivots);
        second[e / kWidePivots][e % kWidePivots] =
            load_cell(distance, n, k0 + e / kWidePivots, j0 + e % kWidePivots);
    }
    __syncthreads();
    float cells[kEach][kEach];
    for (int r = 0; r < kEach; ++r)
        for (int c = 0; c < kEach; ++c)
            cells[r][c] = blockIdx.y == 0 ? second[y + kThreads * r][x + kThreads * c]
                                          : first[y + kThreads * r][x + kThreads * c];
    for (int k = 0; k < kWidePivots; ++k)
        for (int r = 0; r < kEach; ++r)
            for (int c = 0; c < kEach; ++c)
                cells[r][c] = fminf(cells[r][c], first[y + kThreads * r][k] + second[k][x + kThreads * c]);
    for (int r = 0; r < kEach; ++r) {
        for (int c = 0; c < kEach; ++c) {
            const int i = i0 + y + kThreads * r;
            const int j = j0 + x + kThreads * c;
            if (i < n && j < n) distance[std::size_t(i) * n + j] = cells[r][c];
        }
    }
}

// Four cells of a row, in one load or store where rows are 16-byte aligned.
template <bool kAligned>
__device__ float4 load_four(const float* distance, int n, int i, int j) {
    if (kAligned && i < n && j < n)
        return *reinterpret_cast<const float4*>(distance + std::size_t(i) * n + j);
    return make_float4(load_cell(distance, n, i, j), load_cell(distance, n, i, j + 1),
                       load_cell(distance, n, i, j + 2), load_cell(distance, n, i, j + 3));
}

template <bool kAligned>
__device__ void store_four(float* distance, int n, int i, int j, const float (&cells)[4]) {
    if (i >= n) return;
    float* const to = distance + std::size_t(i) * n + j;
    if (kAligned) {
        if (j < n) *reinterpret_cast<float4*>(to) = make_float4(cells[0], cells[1], cells[2], cells[3]);
    } else {
        for (int c = 0; c < 4; ++c)
            if (j + c < n) to[c] = cells[c];
    }
}

constexpr int kWideSide = 128;  // of a block's tile
constexpr int kChunk = 16;      // vertices that are in shared memory at a time

// Idea: 8 x 8 cells per thread, in four quarters of 4 x 4. In a step a thread loads 8 values of the
// column and 8 of the row by four 16-byte loads, for 64 cells, 128 instructions.
// Cost removed: beside register_tiles, half of the reads and writes of the matrix (64 vertices per
// round), and seven of eight loads from shared memory.
// Still limits it: with 1,024 vertices latency: 64 blocks for 132 SMs. With 16,384 it reaches 61 %
// of what the issue slots allow by arithmetic, two instructions for each cell.
template <bool kAligned>
__global__ void __launch_bounds__(kThreads* kThreads, 2) wide_tiles(float* distance, int n, int k0) {
    alignas(16) __shared__ float
        column[kChunk][kWideSide + 4];  // transposed; + 4: 2-way conflicts when it is filled, not 16-way
    alignas(16) __shared__ float row[kChunk][kWideSide];
    const int y = static_cast<int>(threadIdx.y);
    const int x = static_cast<int>(threadIdx.x);
    const int i0 = static_cast<int>(blockIdx.y) * kWideSide;
    const int j0 = static_cast<int>(blockIdx.x) * kWideSide;
    // [r][c]: row 4 y + r % 4 of the upper (r < 4) or the lower half of the tile; columns likewise.
    float cells[8][2][4];
#pragma unroll
    for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float4 four =
                load_four<kAligned>(distance, n, i0 + r / 4 * 64 + 4 * y + r % 4, j0 + h * 64 + 4 * x);
            cells[r][h][0] = four.x;
            cells[r][h][1] = four.y;
            cells[r][h][2] = four.z;
            cells[r][h][3] = four.w;
        }
    }
    for (int chunk = k0; chunk < k0 + kWidePivots; chunk += kChunk) {
        __syncthreads();  // the chunk before is no longer needed
        for (int e = y * kThreads + x; e < kChunk * kWideSide; e += kThreads * kThreads) {
            column[e % kChunk][e / kChunk] = load_cell(distance, n, i0 + e / kChunk, chunk + e % kChunk);
            row[e / kWideSide][e % kWideSide] =
                load_cell(distance, n, chunk + e / kWideSide, j0 + e % kWideSide);
        }
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < kChunk; ++k) {
            const float4 upper = *reinterpret_cast<const float4*>(&column[k][4 * y]);
            const float4 lower = *reinterpret_cast<const float4*>(&column[k][64 + 4 * y]);
            const float4 front = *reinterpret_cast<const float4*>(&row[k][4 * x]);
            const float4 back = *reinterpret_cast<const float4*>(&row[k][64 + 4 * x]);
            const float to_k[8] = {upper.x, upper.y, upper.z, upper.w, lower.x, lower.y, lower.z, lower.w};
            const float from_k[2][4] = {{front.x, front.y, front.z, front.w},
                                        {back.x, back.y, back.z, back.w}};
#pragma unroll
            for (int r = 0; r < 8; ++r)
#pragma unroll
                for (int h = 0; h < 2; ++h)
#pragma unroll
                    for (int c = 0; c < 4; ++c)
                        cells[r][h][c] = fminf(cells[r][h][c], to_k[r] + from_k[h][c]);
        }
    }
    // Halves of the tile that hold rows or columns of the pivots are final, and other blocks read
    // them.
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int h = 0; h < 2; ++h)
            if (i0 + r / 4 * 64 != k0 && j0 + h * 64 != k0)
                store_four<kAligned>(distance, n, i0 + r / 4 * 64 + 4 * y + r % 4, j0 + h * 64 + 4 * x,
                                     cells[r][h]);
}

inline void launch_wide_tiles(float* distance, int n, cudaStream_t stream) {
    static_assert(kWidePivots == kThreads * kEach && kWideSide == 2 * kWidePivots);
    const bool is_aligned = n % 4 == 0 && reinterpret_cast<std::uintptr_t>(distance) % 16 == 0;
    const dim3 block(kThreads, kThreads);
    const unsigned tiles = course::ceil_div(n, kWidePivots);
    const unsigned wide = course::ceil_div(n, kWideSide);
    for (int k0 = 0; k0 < n; k0 += kWidePivots) {
        wide_pivot_tile<<<1, block, 0, stream>>>(distance, n, k0);
        wide_pivot_rows_and_columns<<<dim3(tiles, 2), block, 0, stream>>>(distance, n, k0);
        if (is_aligned)
            wide_tiles<true><<<dim3(wide, wide), block, 0, stream>>>(distance, n, k0);
        else
            wide_tiles<false><<<dim3(wide, wide), block, 0, stream>>>(distance, n, k0);
    }
}

}  // namespace day13
