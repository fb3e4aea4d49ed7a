// How the kernels of day 10 read and write images: any border, one or three channels, floats or
// bytes. And how tiles cover an image.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "border.hpp"
#include "common/device/grid.hpp"

namespace day10 {

inline constexpr int kOutside = -1;

// The index in [0, n) whose value the border rule puts at index i; kOutside for the constant
// border.
__device__ inline int border_place(int i, int n, BorderKind kind) {
    if (i >= 0 && i < n) return i;
    switch (kind) {
        case BorderKind::kReplicate:
            return i < 0 ? 0 : n - 1;
        case BorderKind::kReflect: {
            if (n == 1) return 0;
            const int period = 2 * n - 2;  // there and back
            int place = i % period;
            if (place < 0) place += period;
            return place < n ? place : period - place;
        }
        case BorderKind::kWrap: {
            const int place = i % n;
            return place < 0 ? place + n : place;
        }
        default:
            return kOutside;
    }
}

// The offset of row y >= 0. Multiplying two 32-bit numbers to 64 bits takes one instruction.
__device__ inline std::size_t row_begin(int y, unsigned pitch) {
    return static_cast<std::size_t>(static_cast<unsigned>(y)) * pitch;
}

// The input: rows of `cols` pixels with `channels` values each, RGBRGB...; row y starts y * pitch
// values after `data`: the pitch is a leading dimension (day 5).
template <class T>
struct Source {
    const T* data;
    unsigned pitch;
    int rows;
    int cols;
    int channels;
    Border border;

    __host__ __device__ int width() const { return cols * channels; }  // values of a row
    __device__ const T* row(int y) const { return data + row_begin(y, pitch); }

    // The value of pixel (y, x), inside the image or outside.
    __device__ float at(int y, int x, int channel) const {
        const int row_place = border_place(y, rows, border.kind);
        const int col_place = border_place(x, cols, border.kind);
        if (row_place == kOutside || col_place == kOutside) return border.value;
        return static_cast<float>(row(row_place)[col_place * channels + channel]);
    }
};

// The output, of the same shape.
template <class T>
struct Target {
    T* data;
    unsigned pitch;

    __device__ T* row(int y) const { return data + row_begin(y, pitch); }
};

// A sum as a value of the image. Bytes: rintf rounds halves to even, as cv::saturate_cast does; NaN
// becomes 0.
template <class T>
__device__ T to_value(float sum) {
    if constexpr (std::is_same_v<T, float>) {
        return sum;
    } else {
        return static_cast<T>(fminf(fmaxf(rintf(sum), 0.0f), 255.0f));
    }
}

// The block's tile. Grids are one-dimensional, because only the x dimension may exceed 65,535
// blocks.
struct Tile {
    int row;    // the first row of the tile
    int value;  // and its first value in that row

    __device__ Tile(int tile_rows, int tile_values, int tiles_across)
        : row(static_cast<int>(blockIdx.x) / tiles_across * tile_rows),
          value(static_cast<int>(blockIdx.x) % tiles_across * tile_values) {}
};

// Tiles of `each` values, for `count` values side by side.
inline int tiles(int count, int each) {
    return course::ceil_div(count, each);
}

// A block for each tile of the image, row after row of tiles.
template <class T>
unsigned grid_of(const Source<T>& in, int tile_rows, int tile_values) {
    const auto down = static_cast<std::size_t>(tiles(in.rows, tile_rows));
    return course::blocks_for(down * static_cast<std::size_t>(tiles(in.width(), tile_values)), 1);
}

}  // namespace day10
