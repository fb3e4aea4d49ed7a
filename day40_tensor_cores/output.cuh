// Where results go, and the tiles that they come in: what all versions share.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device_view.hpp"
#include "common/grid.hpp"
#include "common/pack.cuh"

namespace day40 {

struct Output {
    course::DeviceMatrix<float> c;
    float alpha;
    float beta;
    bool pairs;  // every element with an even column is at a multiple of 8 bytes
};

inline Output make_output(const course::DeviceMatrix<float>& c, float alpha, float beta) {
    return {.c = c,
            .alpha = alpha,
            .beta = beta,
            .pairs = c.leading_dimension() % 2 == 0 && course::is_aligned(c.data(), 8)};
}

__device__ inline bool inside(const Output& out, int row, int column) {
    return row < static_cast<int>(out.c.rows()) && column < static_cast<int>(out.c.cols());
}

// What becomes of the sums at (row, column) and beside it: alpha sum + beta C. C is read only if beta asks for it.
__device__ inline float2 finished(const Output& out, int row, int column, float sum, float beside) {
    float2 result = make_float2(out.alpha * sum, out.alpha * beside);
    if (out.beta != 0) {
        if (inside(out, row, column)) result.x += out.beta * out.c(row, column);
        if (inside(out, row, column + 1)) result.y += out.beta * out.c(row, column + 1);
    }
    return result;
}

// Stores them; `column` is even.
__device__ inline void store_pair(const Output& out, int row, int column, float sum, float beside) {
    const float2 result = finished(out, row, column, sum, beside);
    if (out.pairs && inside(out, row, column + 1)) {
        *reinterpret_cast<float2*>(&out.c(row, column)) = result;
    } else {
        if (inside(out, row, column)) out.c(row, column) = result.x;
        if (inside(out, row, column + 1)) out.c(row, column + 1) = result.y;
    }
}

// The order in which tiles of C are taken: in bands of `band` rows of them, a band column by column, there and back. So blocks that run at the
// same time share rows of A and columns of B, which then come from the L2 cache.
struct Order {
    int rows;  // of tiles
    int columns;
    int band;

    struct Place {
        int row;
        int column;
    };
    __device__ Place place(int tile) const {
        const int number = tile / (band * columns);
        const int in_band = tile % (band * columns);
        const int height = min(band, rows - number * band);
        const int column = in_band / height;
        return {number * band + in_band % height, number % 2 == 0 ? column : columns - 1 - column};
    }
};

inline Order make_order(const course::DeviceMatrix<float>& c, int tile_rows, int tile_columns, int band) {
    const auto tiles = [](std::size_t extent, int tile) {
        return static_cast<int>(course::ceil_div(extent, static_cast<std::size_t>(tile)));
    };
    return {.rows = tiles(c.rows(), tile_rows), .columns = tiles(c.cols(), tile_columns), .band = band};
}

// Blocks for that many tiles; throws std::invalid_argument when a grid cannot have them.
inline unsigned blocks_of(const Order& order, int blocks_of_a_tile = 1) {
    return course::blocks_for(static_cast<std::size_t>(order.rows) * static_cast<std::size_t>(order.columns) *
                                  static_cast<std::size_t>(blocks_of_a_tile),
                              1);
}

}  // namespace day40
