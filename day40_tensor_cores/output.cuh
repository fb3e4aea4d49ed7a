// Where results go, and the tiles that they come in: what all versions share.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device_view.hpp"
#include "common/grid.hpp"
#include "common/pack.cuh"

namespace day40 {

// Sum: float, or int of integers.
template <class Sum>
struct OutputOf {
    course::DeviceMatrix<Sum> c;
    Sum alpha;
    Sum beta;
    bool pairs;  // every element with an even column is at a multiple of 8 bytes
};
using Output = OutputOf<float>;

template <class Sum>
using PairOf = course::Pack<Sum, 2>;

template <class Sum>
OutputOf<Sum> make_output(const course::DeviceMatrix<Sum>& c, Sum alpha, Sum beta) {
    return {.c = c,
            .alpha = alpha,
            .beta = beta,
            .pairs = c.leading_dimension() % 2 == 0 && course::is_aligned(c.data(), 8)};
}

template <class Sum>
__device__ bool inside(const OutputOf<Sum>& out, int row, int column) {
    return row < static_cast<int>(out.c.rows()) && column < static_cast<int>(out.c.cols());
}

// What becomes of the sums at (row, column) and beside it: alpha sum + beta C. C is read only if beta asks for it.
template <class Sum>
__device__ PairOf<Sum> finished(const OutputOf<Sum>& out, int row, int column, Sum sum, Sum beside) {
    PairOf<Sum> result = {{out.alpha * sum, out.alpha * beside}};
    if (out.beta != 0) {
        if (inside(out, row, column)) result.value[0] += out.beta * out.c(row, column);
        if (inside(out, row, column + 1)) result.value[1] += out.beta * out.c(row, column + 1);
    }
    return result;
}

// Stores them; `column` is even.
template <class Sum>
__device__ void store_pair(const OutputOf<Sum>& out, int row, int column, Sum sum, Sum beside) {
    const PairOf<Sum> result = finished(out, row, column, sum, beside);
    if (out.pairs && inside(out, row, column + 1)) {
        result.store(&out.c(row, column));
    } else {
        if (inside(out, row, column)) out.c(row, column) = result.value[0];
        if (inside(out, row, column + 1)) out.c(row, column + 1) = result.value[1];
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

template <class Sum>
Order make_order(const course::DeviceMatrix<Sum>& c, int tile_rows, int tile_columns, int band) {
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
