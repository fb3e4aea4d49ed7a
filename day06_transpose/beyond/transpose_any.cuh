// Day 6, beyond: transposes near the speed of a copy, for 16 and 32 bits and for any shape.
//
//   version      what is new                                  what limits it
//   vectorised   16-byte accesses, 4 x 4 elements turn in     memory; rows must be 16-byte aligned
//                registers
//   aligned      tiles start at the sectors of `out`: any     memory; 8 rows of each tile are
//                leading dimension                            loaded twice
//
// `aligned` has a kernel of its own for 16-bit elements: it moves them in pairs.
//
// These kernels move bits without interpreting them, so elements are std::uint16_t or
// std::uint32_t. Indices have 64 bits.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"

namespace day06 {

using course::DeviceMatrix;

constexpr int kThreads = 256;  // of a block, in both versions

// Where a block's tile starts in `in`.
struct Tile {
    std::size_t row;
    std::size_t col;
};

// Rasterisation order: the blocks go down `in`, then on to the next column of tiles, so that blocks
// that run at the same time store long pieces of rows of `out`. Adjacent blocks share the rows of
// the halo, too. Measured: faster than across first, and than groups of 8, 16 or 32 tiles side by
// side.
template <int TILE_ROWS, int TILE_COLS>
__device__ Tile tile_of_block(unsigned tiles_down) {
    return {static_cast<std::size_t>(blockIdx.x % tiles_down) * TILE_ROWS,
            static_cast<std::size_t>(blockIdx.x / tiles_down) * TILE_COLS};
}

constexpr int kPacks = 16;  // 16-byte packs in a row of a tile; 16 x 16 threads

// Idea: a thread loads 16 bytes from each of 4 rows (8 rows of 16-bit elements), transposes the 4 x
// 4 elements in its registers, and stores four columns of them to the tile as 16-byte packs. The
// tile holds columns, and is swizzled in units of packs.
// Cost removed: three of four instructions of each kind, and short rows: 256 bytes of each row. 64
// bytes per thread in flight.
// Still limits it: memory (counters: 84 % busy, 32-bit elements). Rows must consist of whole packs
// and be 16-byte aligned; 9999 is not a multiple of four.
template <class T>
__global__ void __launch_bounds__(kThreads)
    transpose_vectorised(DeviceMatrix<const T> in, DeviceMatrix<T> out, unsigned tiles_down) {
    constexpr int kPack = 16 / sizeof(T);  // elements of a pack
    constexpr int kEdge = kPacks * kPack;  // rows and columns of a tile
    using Pack = course::Pack<T, kPack>;
    __shared__ uint4 tile[kEdge][kPacks];  // tile[x]: column x of the block's tile of `in`, in packs

    const auto [first_row, first_col] = tile_of_block<kEdge, kEdge>(tiles_down);
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

// The tiles of `in`, a block for each, as tile_of_block() numbers them.
struct TileGrid {
    std::size_t down;    // in a column of tiles
    std::size_t across;  // in a row of tiles
    std::size_t blocks() const { return down * across; }
};

inline TileGrid tile_grid(std::size_t rows, std::size_t cols, std::size_t tile_rows, std::size_t tile_cols) {
    return {course::ceil_div(rows, tile_rows), course::ceil_div(cols, tile_cols)};
}

template <class T>
constexpr std::size_t kPackedEdge{kPacks * (16 / sizeof(T))};  // rows and columns of a tile

template <class T>
void launch_vectorised(DeviceMatrix<const T> in, DeviceMatrix<T> out, cudaStream_t stream) {
    const TileGrid grid = tile_grid(in.rows(), in.cols(), kPackedEdge<T>, kPackedEdge<T>);
    transpose_vectorised<T><<<static_cast<unsigned>(grid.blocks()), kThreads, 0, stream>>>(
        in, out, static_cast<unsigned>(grid.down));
}

constexpr int kEdge = 64;              // rows and columns of a tile
constexpr int kWarps = kThreads / 32;  // a warp takes every eighth row

// How many elements before `row_of_out` its sector (or line) of `bytes` bytes starts.
template <class T>
__device__ int elements_into(const T* row_of_out, int bytes) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(row_of_out) % bytes / sizeof(T));
}

// Idea: where rows of `out` are not a multiple of 32 bytes long, each row starts at a different
// offset in its sector. So each row of `out` gets tiles of its own, shifted back to the start of a
// sector. For a shift of up to a sector the block loads a sector's worth of rows more: HALO, 8 rows
// of 32-bit elements. Where all rows of `out` are aligned, HALO is 0.
// Cost removed: stores of partial sectors, except at the ends of rows.
// Still limits it: memory (counters without a halo: 83 % busy). HALO of HALO + 64 rows are loaded
// twice, by this block and by the one above it.
template <int HALO>
__global__ void __launch_bounds__(kThreads)
    transpose_aligned(DeviceMatrix<const std::uint32_t> in, DeviceMatrix<std::uint32_t> out,
                      unsigned tiles_down) {
    constexpr int kRows = (HALO + kEdge) / kWarps;  // rows that a warp loads
    // tile[y][x] = in[first_row - HALO + y][first_col + x]
    __shared__ std::uint32_t tile[HALO + kEdge][kEdge + 1];

    const auto [first_row, first_col] = tile_of_block<kEdge, kEdge>(tiles_down);
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    std::uint32_t loaded[kRows][2];  // all loads are issued before the first value is needed
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        // Above row 0 the subtraction wraps, and the row is out of range.
        const std::size_t row = first_row - HALO + warp + i * kWarps;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const std::size_t col = first_col + lane + half * 32;
            loaded[i][half] = row < in.rows() && col < in.cols() ? in(row, col) : 0;
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
            const std::uint32_t value = tile[HALO + y][x];
            if (row < in.rows() && col < in.cols()) out(col, row) = value;
        }
    }
}

// Tiles are shifted up by at most HALO - 1 rows, so the last row of `in` may need one more tile.
template <int HALO>
std::size_t shifted_rows(std::size_t rows) {
    return HALO == 0 ? rows : rows + HALO - 1;
}

template <int HALO>
void launch_aligned(DeviceMatrix<const std::uint32_t> in, DeviceMatrix<std::uint32_t> out,
                    cudaStream_t stream) {
    const TileGrid grid = tile_grid(shifted_rows<HALO>(in.rows()), in.cols(), kEdge, kEdge);
    transpose_aligned<HALO><<<static_cast<unsigned>(grid.blocks()), kThreads, 0, stream>>>(
        in, out, static_cast<unsigned>(grid.down));
}

constexpr int kPairedRows = 128;  // rows of a tile of 16-bit elements: 64 pairs

// Idea: an element and the one below it in `in` are adjacent in `out`. So a thread loads both, and
// from there on they are one word, in the tile and in the store to `out`. The tile holds columns of
// pairs, swapped already.
// Cost removed: with 16-bit elements `aligned` needs as many instructions as with 32-bit ones, for
// half the bytes. Here stores to the tile and to `out` are halved, and so is their arithmetic.
// Still limits it: loads of two bytes each. Rows of `in` may start in the middle of a word.
template <int HALO>
__global__ void __launch_bounds__(kThreads)
    transpose_aligned_pairs(DeviceMatrix<const std::uint16_t> in, DeviceMatrix<std::uint16_t> out,
                            unsigned tiles_down) {
    using Pair = course::Pack<std::uint16_t, 2>;
    constexpr int kRows = HALO + kPairedRows;
    constexpr int kPairs = kRows / 2 / kWarps;  // pairs of rows that a warp loads
    // tile[x][y] = in[first_row - HALO + y][first_col + x], padded by a pair
    alignas(Pair) __shared__ std::uint16_t tile[kEdge][kRows + 2];

    const auto [first_row, first_col] = tile_of_block<kPairedRows, kEdge>(tiles_down);
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    // Of the tile's rows, those from `begin` to before `end` are rows of `in`.
    const int begin = first_row == 0 ? HALO : 0;
    const std::size_t to_last = in.rows() + HALO - first_row;
    const int end = to_last < std::size_t{kRows} ? static_cast<int>(to_last) : kRows;

    // The index is incremented down `in`, because a multiplication for each row would cost more
    // than its loads.
    const std::size_t in_ld = in.leading_dimension();
    std::size_t upper = (first_row - HALO + 2 * warp) * in_ld + first_col + lane;
    Pair loaded[kPairs][2];
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
        const int y = 2 * (warp + i * kWarps);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const std::size_t element = upper + half * 32;
            const bool inside = begin <= y && first_col + lane + half * 32 < in.cols();
            loaded[i][half] = {{inside && y < end ? in.data()[element] : std::uint16_t{},
                                inside && y + 1 < end ? in.data()[element + in_ld] : std::uint16_t{}}};
        }
        upper += 2 * kWarps * in_ld;
    }
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
        const int y = 2 * (warp + i * kWarps);
        loaded[i][0].store(&tile[lane][y]);
        loaded[i][1].store(&tile[lane + 32][y]);
    }
    __syncthreads();

#pragma unroll 4
    for (int i = 0; i < kEdge / kWarps; ++i) {
        const int x = warp + i * kWarps;
        const std::size_t col = first_col + x;
        if (col >= in.cols()) break;
        std::uint16_t* const to = &out(col, first_row);  // first_row is a multiple of a sector
        const int shift = HALO == 0 ? 0 : elements_into(to, 32);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int y = HALO + 2 * (lane + half * 32) - shift;  // this thread stores y and y + 1
            // With an odd shift the pair straddles two words of the tile.
            const Pair pair = HALO == 0 ? Pair::load(&tile[x][y]) : Pair{{tile[x][y], tile[x][y + 1]}};
            if (begin <= y && y + 1 < end) {
                pair.store(to + y - HALO);
            } else if (y + 1 == end) {
                to[y - HALO] = pair.value[0];  // the last row of `in`
            } else if (y + 1 == begin) {
                to[y + 1 - HALO] = pair.value[1];  // the first row of `in`
            }
        }
    }
}

template <int HALO>
void launch_aligned_pairs(DeviceMatrix<const std::uint16_t> in, DeviceMatrix<std::uint16_t> out,
                          cudaStream_t stream) {
    const TileGrid grid = tile_grid(shifted_rows<HALO>(in.rows()), in.cols(), kPairedRows, kEdge);
    transpose_aligned_pairs<HALO><<<static_cast<unsigned>(grid.blocks()), kThreads, 0, stream>>>(
        in, out, static_cast<unsigned>(grid.down));
}

}  // namespace day06
