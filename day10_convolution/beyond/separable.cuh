// Day 10, beyond: separable filters, weight(dy, dx) = column[dy] * row[dx].
//
// Filter every row with `row`, then every column of the result with `column`: rows + cols
// multiply-adds per value instead of rows x cols. The result between the passes is float, even for
// 8-bit images.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "picture.cuh"

namespace day10::separable {

constexpr int kBlockCols = 32;
constexpr int kBlockRows = 8;
constexpr dim3 kBlock(kBlockCols, kBlockRows);

// Idea: one thread per value, with the taps along the row. A second kernel does the same along the
// columns of the result.
// Cost removed: rows x cols multiply-adds become rows + cols.
// Still limits it: issue slots in the first kernel (counters: 86 % used), FMA in the second (70 %).
// For each multiply-add there are two loads and the border rule.
template <class T>
__global__ void filter_rows(Source<T> in, Target<float> out, const float* taps, int count, int tiles_across) {
    const Tile tile(kBlockRows, kBlockCols, tiles_across);
    const int row = tile.row + static_cast<int>(threadIdx.y);
    const int value = tile.value + static_cast<int>(threadIdx.x);
    if (row >= in.rows || value >= in.width()) return;
    const int left = value / in.channels - count / 2;
    float sum = 0;
    for (int k = 0; k < count; ++k)
        sum += taps[k] * in.at(row, left + k, value % in.channels);
    out.row(row)[value] = sum;
}

template <class T>
__global__ void filter_columns(Source<float> in, Target<T> out, const float* taps, int count,
                               int tiles_across) {
    const Tile tile(kBlockRows, kBlockCols, tiles_across);
    const int row = tile.row + static_cast<int>(threadIdx.y);
    const int value = tile.value + static_cast<int>(threadIdx.x);
    if (row >= in.rows || value >= in.width()) return;
    const int top = row - count / 2;
    float sum = 0;
    for (int k = 0; k < count; ++k)
        sum += taps[k] * in.at(top + k, value / in.channels, value % in.channels);
    out.row(row)[value] = to_value<T>(sum);
}

// The weights of a separable filter, on the device: of a column, and along a row.
struct Taps {
    const float* column;
    const float* row;
    int column_taps;
    int row_taps;
};

// `between` has room for the image, as floats. `between_border` is the border of the row-filtered
// image.
template <class T>
void launch_two_pass(Source<T> in, Target<T> out, Taps taps, float* between, Border between_border,
                     cudaStream_t stream) {
    const unsigned grid = grid_of(in, kBlockRows, kBlockCols);
    const int across = tiles(in.width(), kBlockCols);
    const auto pitch = static_cast<unsigned>(in.width());
    filter_rows<<<grid, kBlock, 0, stream>>>(in, Target<float>{between, pitch}, taps.row, taps.row_taps,
                                             across);
    const Source<float> rows_filtered = {between, pitch, in.rows, in.cols, in.channels, between_border};
    filter_columns<<<grid, kBlock, 0, stream>>>(rows_filtered, out, taps.column, taps.column_taps, across);
}

constexpr int kTileCols = 64;
constexpr int kTileRows = 32;

// Idea: a block of 32 x 8 threads does both passes on a tile of 32 x 64 results. The row-filtered
// tile stays in shared memory.
// Cost removed: the round trip of the first result to global memory, and one launch.
// Still limits it: issue slots (counters: 82 % used). There is a load from the tile for each
// multiply-add, and halo rows are filtered twice, by the tiles above and below.
template <class T>
__global__ void filter_fused(Source<T> in, Target<T> out, const float* column, int column_taps,
                             const float* row, int row_taps, int tiles_across) {
    extern __shared__ float shared[];
    const Tile tile(kTileRows, kTileCols, tiles_across);
    const int tile_rows = kTileRows + column_taps - 1;
    const int tile_values = kTileCols + (row_taps - 1) * in.channels;
    float* const loaded = shared;                              // tile_rows x tile_values
    float* const filtered = shared + tile_rows * tile_values;  // tile_rows x kTileCols
    const int thread_row = static_cast<int>(threadIdx.y);
    const int lane = static_cast<int>(threadIdx.x);

    const int top = tile.row - column_taps / 2;
    for (int y = thread_row; y < tile_rows; y += kBlockRows) {
        for (int x = lane; x < tile_values; x += kBlockCols) {
            const int value = tile.value + x;
            loaded[y * tile_values + x] =
                in.at(top + y, value / in.channels - row_taps / 2, value % in.channels);
        }
    }
    __syncthreads();  // loaded is complete

    for (int y = thread_row; y < tile_rows; y += kBlockRows) {
        for (int x = lane; x < kTileCols; x += kBlockCols) {
            float sum = 0;
            for (int k = 0; k < row_taps; ++k)
                sum += row[k] * loaded[y * tile_values + x + k * in.channels];
            filtered[y * kTileCols + x] = sum;
        }
    }
    __syncthreads();  // filtered is complete

    for (int y = thread_row; y < kTileRows && tile.row + y < in.rows; y += kBlockRows) {
        for (int x = lane; x < kTileCols && tile.value + x < in.width(); x += kBlockCols) {
            float sum = 0;
            for (int k = 0; k < column_taps; ++k)
                sum += column[k] * filtered[(y + k) * kTileCols + x];
            out.row(tile.row + y)[tile.value + x] = to_value<T>(sum);
        }
    }
}

inline std::size_t fused_bytes(std::size_t row_taps, std::size_t column_taps, std::size_t channels) {
    const std::size_t tile_rows = kTileRows + column_taps - 1;
    const std::size_t tile_values = kTileCols + (row_taps - 1) * channels;
    return tile_rows * (tile_values + kTileCols) * sizeof(float);
}

template <class T>
void launch_fused(Source<T> in, Target<T> out, Taps taps, cudaStream_t stream) {
    const std::size_t shared =
        fused_bytes(static_cast<std::size_t>(taps.row_taps), static_cast<std::size_t>(taps.column_taps),
                    static_cast<std::size_t>(in.channels));
    filter_fused<<<grid_of(in, kTileRows, kTileCols), kBlock, shared, stream>>>(
        in, out, taps.column, taps.column_taps, taps.row, taps.row_taps, tiles(in.width(), kTileCols));
}

}  // namespace day10::separable
