// Day 10: convolution and blur.                              PMPP chapter 7 (4th and 5th edition)
//
//   version               idea                                        what limits it
//   naive                 a thread per value, all from global memory  issue: the border rule per weight
//   constant_filter       weights in constant memory                  issue: the same
//   shared_halo           tile and halo in shared memory              issue: a load per multiply-add
//   cached_halo           tile in shared memory, halo from the caches issue: a branch per multiply-add
//
// Every value is read and written once, so a copy of the image is the limit. A sum takes rows x
// cols multiply-adds. Each kernel is followed by its launch. beyond/ has filters that are a column
// times a row, for which rows + cols multiply-adds are enough.
//
//   ./course run day10                                          every version, verified and timed
//   ./course run day10 --program                                program.cu: one blur, from main() to the result
//   ./course run day10 --image in.png --sigma 4 --out out.png   blur your own image
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "picture.cuh"

namespace day10 {

constexpr int kBlockCols = 32;  // a warp reads 32 adjacent values of a row
constexpr int kBlockRows = 8;
constexpr dim3 kBlock(kBlockCols, kBlockRows);

struct Size {
    int rows;
    int cols;
};

// Idea: one thread per value; it loads its neighbours and their weights from global memory.
// Cost removed: the loop over the image.
// Still limits it: issue slots (counters: 84 % used). For each multiply-add there are two loads and
// the border rule.
//
// Thread (x, y) of a 32 x 8 block computes value tile.value + x of row tile.row + y.
template <class T>
__global__ void convolve_naive(Source<T> in, Target<T> out, const float* weights, Size filter,
                               int tiles_across) {
    const Tile tile(kBlockRows, kBlockCols, tiles_across);
    const int row = tile.row + static_cast<int>(threadIdx.y);
    const int value = tile.value + static_cast<int>(threadIdx.x);
    if (row >= in.rows || value >= in.width()) return;

    const int top = row - filter.rows / 2;                   // of the neighbours
    const int left = value / in.channels - filter.cols / 2;  // in pixels
    const int channel = value % in.channels;
    float sum = 0;
    for (int dy = 0; dy < filter.rows; ++dy) {
        for (int dx = 0; dx < filter.cols; ++dx)
            sum += weights[dy * filter.cols + dx] * in.at(top + dy, left + dx, channel);
    }
    out.row(row)[value] = to_value<T>(sum);
}

template <class T>
void launch_naive(Source<T> in, Target<T> out, const float* weights, Size filter, cudaStream_t stream) {
    const unsigned grid = grid_of(in, kBlockRows, kBlockCols);
    convolve_naive<<<grid, kBlock, 0, stream>>>(in, out, weights, filter, tiles(in.width(), kBlockCols));
}

// Constant memory has 64 KB and a cache of its own, which broadcasts one word to all lanes. This
// array takes all of it, so two streams would overwrite each other's filter.
constexpr std::size_t kConstantWeights = 64 * 1024 / sizeof(float);
__constant__ float constant_weights[kConstantWeights];

// Copies the filter's rows x cols weights, which are on the device, to constant memory. Queued on
// the stream, so that earlier kernels there still read their own filter.
inline void put_into_constant_memory(const float* weights, Size filter, cudaStream_t stream) {
    const std::size_t bytes = static_cast<std::size_t>(filter.rows * filter.cols) * sizeof(float);
    cudaMemcpyToSymbolAsync(constant_weights, weights, bytes, 0, cudaMemcpyDeviceToDevice, stream);
}

// Idea: all lanes need the same weight at the same time, so constant memory can broadcast it.
// Cost removed: half of the loads from global memory.
// Still limits it: issue slots (counters: 86 % used). The border rule takes half of the time:
// without it, this kernel takes 1.00 ms instead of 2.03 (H200, 8,192 x 8,192 values, 5 x 5
// weights).
template <class T>
__global__ void convolve_constant(Source<T> in, Target<T> out, Size filter, int tiles_across) {
    const Tile tile(kBlockRows, kBlockCols, tiles_across);
    const int row = tile.row + static_cast<int>(threadIdx.y);
    const int value = tile.value + static_cast<int>(threadIdx.x);
    if (row >= in.rows || value >= in.width()) return;

    const int top = row - filter.rows / 2;
    const int left = value / in.channels - filter.cols / 2;
    const int channel = value % in.channels;
    float sum = 0;
    for (int dy = 0; dy < filter.rows; ++dy) {
        for (int dx = 0; dx < filter.cols; ++dx)
            sum += constant_weights[dy * filter.cols + dx] * in.at(top + dy, left + dx, channel);
    }
    out.row(row)[value] = to_value<T>(sum);
}

template <class T>
void launch_constant(Source<T> in, Target<T> out, const float* weights, Size filter, cudaStream_t stream) {
    put_into_constant_memory(weights, filter, stream);
    const unsigned grid = grid_of(in, kBlockRows, kBlockCols);
    convolve_constant<<<grid, kBlock, 0, stream>>>(in, out, filter, tiles(in.width(), kBlockCols));
}

constexpr int kTile = 32;  // a block computes 32 x 32 values, four per thread

// Idea: a block loads its tile and the halo around it once: (32 + halo) x (32 + halo) values for 32
// x 32 results. Values outside the image are stored in the tile as well.
// Cost removed: loading a value once per weight, and the bounds check per weight.
// Still limits it: issue slots (counters: 90 % used), with a load from the tile for each
// multiply-add.
template <class T>
__global__ void convolve_shared_halo(Source<T> in, Target<T> out, Size filter, int tiles_across) {
    extern __shared__ float with_halo[];  // tile_rows x tile_values
    const Tile tile(kTile, kTile, tiles_across);
    const int tile_rows = kTile + filter.rows - 1;
    const int tile_values = kTile + (filter.cols - 1) * in.channels;
    const int top = tile.row - filter.rows / 2;

    for (int y = static_cast<int>(threadIdx.y); y < tile_rows; y += kBlockRows) {
        for (int x = static_cast<int>(threadIdx.x); x < tile_values; x += kBlockCols) {
            // Divide first, then move left by half a filter: dividing a negative number would round
            // up.
            const int value = tile.value + x;
            with_halo[y * tile_values + x] =
                in.at(top + y, value / in.channels - filter.cols / 2, value % in.channels);
        }
    }
    __syncthreads();  // the tile is complete

    const int x = static_cast<int>(threadIdx.x);
    for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kBlockRows) {
        if (tile.row + y >= in.rows || tile.value + x >= in.width()) continue;
        float sum = 0;
        for (int dy = 0; dy < filter.rows; ++dy) {
            for (int dx = 0; dx < filter.cols; ++dx)
                sum += constant_weights[dy * filter.cols + dx] *
                       with_halo[(y + dy) * tile_values + x + dx * in.channels];
        }
        out.row(tile.row + y)[tile.value + x] = to_value<T>(sum);
    }
}

inline std::size_t shared_halo_bytes(Size filter, int channels) {
    const auto tile_rows = static_cast<std::size_t>(kTile + filter.rows - 1);
    return tile_rows * static_cast<std::size_t>(kTile + (filter.cols - 1) * channels) * sizeof(float);
}

template <class T>
void launch_shared_halo(Source<T> in, Target<T> out, const float* weights, Size filter, cudaStream_t stream) {
    put_into_constant_memory(weights, filter, stream);
    const std::size_t shared = shared_halo_bytes(filter, in.channels);
    convolve_shared_halo<<<grid_of(in, kTile, kTile), kBlock, shared, stream>>>(in, out, filter,
                                                                                tiles(in.width(), kTile));
}

// Idea: the halo of a tile lies inside the adjacent tiles, which other blocks load at about the
// same time. So only the tile itself is in shared memory, and the halo comes from the caches.
// Cost removed: the halo in shared memory, whose size depends on the filter.
// Still limits it: issue slots (counters: 87 % used). The branch per weight takes most of the time:
// is this neighbour in the tile?
template <class T>
__global__ void convolve_cached_halo(Source<T> in, Target<T> out, Size filter, int tiles_across) {
    __shared__ float inside[kTile][kTile];
    const Tile tile(kTile, kTile, tiles_across);
    const int x = static_cast<int>(threadIdx.x);
    const int value = tile.value + x;

    for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kBlockRows) {
        if (tile.row + y < in.rows && value < in.width())
            inside[y][x] = static_cast<float>(in.row(tile.row + y)[value]);
    }
    __syncthreads();

    if (value >= in.width()) return;
    const int tile_rows = min(kTile, in.rows - tile.row);
    const int tile_values = min(kTile, in.width() - tile.value);
    for (int y = static_cast<int>(threadIdx.y); y < tile_rows; y += kBlockRows) {
        float sum = 0;
        for (int dy = 0; dy < filter.rows; ++dy) {
            for (int dx = 0; dx < filter.cols; ++dx) {
                const int near_y = y + dy - filter.rows / 2;
                const int near_x = x + (dx - filter.cols / 2) * in.channels;
                const bool in_tile = near_y >= 0 && near_y < tile_rows && near_x >= 0 && near_x < tile_values;
                const float neighbour =
                    in_tile ? inside[near_y][near_x]
                            : in.at(tile.row + near_y, value / in.channels + dx - filter.cols / 2,
                                    value % in.channels);
                sum += constant_weights[dy * filter.cols + dx] * neighbour;
            }
        }
        out.row(tile.row + y)[value] = to_value<T>(sum);
    }
}

template <class T>
void launch_cached_halo(Source<T> in, Target<T> out, const float* weights, Size filter, cudaStream_t stream) {
    put_into_constant_memory(weights, filter, stream);
    convolve_cached_halo<<<grid_of(in, kTile, kTile), kBlock, 0, stream>>>(in, out, filter,
                                                                           tiles(in.width(), kTile));
}

}  // namespace day10
