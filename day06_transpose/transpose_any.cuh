// Day 6, second part: transposes near the speed of a copy, for elements of 16 and 32 bits and for any shape.
//
//   version      what is new                                              what limits it
//   vectorised   16-byte accesses, 4 x 4 elements turn in registers       rows must be 16-byte aligned
//   aligned      tiles begin at the sectors of `out`: any leading         reads eight rows of each tile twice
//                dimension
//   streamed     a block walks down `in` and keeps the last rows          memory
//
// These kernels move bits and never look at them, so T is std::uint16_t or std::uint32_t. Indices have 64 bits.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/device_view.hpp"
#include "common/device/pack.cuh"

namespace day06 {

using course::DeviceMatrix;

constexpr int kThreads = 256;  // of a block, in all three versions

// Where a block's tile begins in `in`.
struct Tile {
    std::size_t row;
    std::size_t col;
};

constexpr unsigned kGroup =
    16;  // tiles side by side that neighbouring blocks take before they go down a row of tiles

// Rasterisation order. Blocks that run at the same time should share DRAM pages of both matrices. Row by row, they would read long
// pieces of `in` and write short pieces of `out`. So blocks take kGroup tiles of a row, then the kGroup tiles below them.
template <int TILE_ROWS, int TILE_COLS>
__device__ Tile tile_of_block(unsigned tiles_down, unsigned tiles_across) {
    const unsigned in_group = min(kGroup, tiles_across) * tiles_down;
    const unsigned group = blockIdx.x / in_group;
    const unsigned place = blockIdx.x % in_group;
    const unsigned width = min(kGroup, tiles_across - group * kGroup);  // the last group may be narrower
    return {static_cast<std::size_t>(place / width) * TILE_ROWS,
            static_cast<std::size_t>(group * kGroup + place % width) * TILE_COLS};
}

constexpr int kPacks = 16;  // 16-byte packs in a row of a tile; 16 x 16 threads

// Idea: a thread loads 16 bytes from each of 4 rows (8 rows of 16-bit elements), turns the 4 x 4 elements in its registers, and
// stores four columns of them into the tile as 16-byte packs. The tile holds columns, and is swizzled in units of packs.
// Cost removed: three of four instructions of each kind, and short rows: 256 bytes of each row. 64 bytes per thread in flight.
// Still limits it: rows must consist of whole packs and begin at multiples of 16 bytes. 9999 is not a multiple of four.
template <class T>
__global__ void __launch_bounds__(kThreads)
    transpose_vectorised(DeviceMatrix<const T> in, DeviceMatrix<T> out, unsigned tiles_down,
                         unsigned tiles_across) {
    constexpr int kPack = 16 / sizeof(T);  // elements of a pack
    constexpr int kEdge = kPacks * kPack;  // rows and columns of a tile
    using Pack = course::Pack<T, kPack>;
    __shared__ uint4 tile[kEdge][kPacks];  // tile[x]: column x of the block's tile of `in`, in packs

    const auto [first_row, first_col] = tile_of_block<kEdge, kEdge>(tiles_down, tiles_across);
    const int tx = threadIdx.x % kPacks;
    const int ty = threadIdx.x / kPacks;

    Pack loaded[kPack];  // kPack x kPack elements
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
        const std::size_t row = first_row + ty * kPack + i;
        const std::size_t col = first_col + tx * kPack;
        loaded[i] = row < in.rows() && col < in.cols() ? Pack::load(&in(row, col)) : Pack{};
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
        Pack turned;
#pragma unroll
        for (int i = 0; i < kPack; ++i)
            turned.value[i] = loaded[i].value[j];
        turned.store(reinterpret_cast<T*>(&tile[tx * kPack + j][ty ^ tx % 8]));
    }
    __syncthreads();

#pragma unroll
    for (int j = 0; j < kPack; ++j) {
        const std::size_t row = first_row + tx * kPack;
        const std::size_t col = first_col + ty * kPack + j;
        const uint4 pack = tile[ty * kPack + j][tx ^ ty % 8];
        if (row < in.rows() && col < in.cols()) *reinterpret_cast<uint4*>(&out(col, row)) = pack;
    }
}

constexpr int kEdge = 64;              // rows and columns of a tile
constexpr int kWarps = kThreads / 32;  // a warp takes every eighth row

// How many elements before `row_of_out` its sector (or line) of `bytes` bytes begins.
template <class T>
__device__ int elements_into(const T* row_of_out, int bytes) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(row_of_out) % bytes / sizeof(T));
}

// Idea: where rows of `out` are not a multiple of 32 bytes long, each row begins somewhere else in its sector. So each row of `out`
// gets tiles of its own, shifted back to where a sector begins. For a shift of up to a sector the block loads a sector's worth
// of rows more: HALO, 8 rows of 32-bit elements. Where all rows of `out` are aligned, HALO is 0.
// Cost removed: stores of parts of sectors, but at the ends of rows.
// Still limits it: HALO of HALO + 64 rows are loaded twice, by this block and by the one above it.
template <class T, int HALO>
__global__ void __launch_bounds__(kThreads) transpose_aligned(DeviceMatrix<const T> in, DeviceMatrix<T> out,
                                                              unsigned tiles_down, unsigned tiles_across) {
    constexpr int kRows = (HALO + kEdge) / kWarps;  // rows that a warp loads
    constexpr int kPad = 4 / sizeof(T);             // a word
    __shared__ T tile[HALO + kEdge][kEdge + kPad];  // tile[y][x] = in[first_row - HALO + y][first_col + x]

    const auto [first_row, first_col] = tile_of_block<kEdge, kEdge>(tiles_down, tiles_across);
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    T loaded[kRows][2];  // all loads are issued before the first value is needed
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        const std::size_t row =
            first_row - HALO + warp + i * kWarps;  // above row 0 it wraps, and is out of range
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const std::size_t col = first_col + lane + half * 32;
            loaded[i][half] = row < in.rows() && col < in.cols() ? in(row, col) : T{};
        }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        tile[warp + i * kWarps][lane] = loaded[i][0];
        tile[warp + i * kWarps][lane + 32] = loaded[i][1];
    }
    __syncthreads();

#pragma unroll 4
    for (int i = 0; i < kEdge / kWarps; ++i) {
        const int x = warp + i * kWarps;
        const std::size_t col = first_col + x;
        const int shift = HALO == 0 ? 0 : elements_into(&out(col, 0), 32);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int y = lane + half * 32 - shift;  // from -shift to 63 - shift
            const std::size_t row = first_row + y;
            const T value = tile[HALO + y][x];
            if (row < in.rows() && col < in.cols()) out(col, row) = value;
        }
    }
}

constexpr int kStep = 32;         // rows of `in` that a block loads in a step
constexpr int kRing = 2 * kStep;  // rows that it keeps
constexpr int kStripCols = 128;   // columns of `in` that a block takes

// Loads rows [first_row, first_row + kStep) of the strip into registers; zero-filled out of range.
template <class T>
__device__ void load_step(T (&loaded)[kStep / kWarps][kStripCols / 32], DeviceMatrix<const T> in,
                          std::size_t first_row, std::size_t first_col) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < kStep / kWarps; ++i) {
        const std::size_t row = first_row + warp + i * kWarps;
#pragma unroll
        for (int j = 0; j < kStripCols / 32; ++j) {
            const std::size_t col = first_col + lane + j * 32;
            loaded[i][j] = row < in.rows() && col < in.cols() ? in(row, col) : T{};
        }
    }
}

// Idea: a block walks down a strip of `in`, 128 columns wide, 32 rows in a step. Shared memory is a ring buffer of the last 64 rows.
// In a step the block stores 32 elements of each of its 128 rows of `out`, shifted back to where a line of 32 elements begins; the
// rows above are still in the ring. The loads of the next step are in flight meanwhile.
// Cost removed: rows that are loaded twice, except where a block begins; stores of parts of lines.
// Still limits it: memory.
template <class T>
__global__ void __launch_bounds__(kThreads)
    transpose_streamed(DeviceMatrix<const T> in, DeviceMatrix<T> out, unsigned strips,
                       std::size_t rows_per_block, std::size_t end_row) {
    constexpr int kPad = 4 / sizeof(T);
    __shared__ T ring[kRing][kStripCols + kPad];  // ring[row % kRing][x] = in[row][first_col + x]

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const std::size_t first_col = static_cast<std::size_t>(blockIdx.x % strips) * kStripCols;
    const std::size_t begin = blockIdx.x / strips * rows_per_block;  // a multiple of kStep
    const std::size_t end = begin + rows_per_block < end_row ? begin + rows_per_block : end_row;

    T loaded[kStep / kWarps][kStripCols / 32];
    const auto keep = [&](std::size_t row) {  // of kStep rows from `row` on
#pragma unroll
        for (int i = 0; i < kStep / kWarps; ++i)
#pragma unroll
            for (int j = 0; j < kStripCols / 32; ++j)
                ring[row % kRing + warp + i * kWarps][lane + j * 32] = loaded[i][j];
    };
    load_step(loaded, in, begin - kStep, first_col);  // the shifts reach up into these rows
    keep(begin - kStep);
    load_step(loaded, in, begin, first_col);

    for (std::size_t row0 = begin; row0 < end; row0 += kStep) {
        keep(row0);
        __syncthreads();  // the rows of this step and of the one before it are in the ring
        if (row0 + kStep < end) load_step(loaded, in, row0 + kStep, first_col);
#pragma unroll 4
        for (int i = 0; i < kStripCols / kWarps; ++i) {
            const int x = warp + i * kWarps;
            const std::size_t col = first_col + x;
            const std::size_t row = row0 + lane - elements_into(&out(col, 0), kStep * sizeof(T));
            const T value = ring[row % kRing][x];
            if (row < in.rows() && col < in.cols()) out(col, row) = value;
        }
        __syncthreads();  // the older rows may be overwritten
    }
}

}  // namespace day06
