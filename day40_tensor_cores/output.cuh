// Where results go, and the tiles that they come in: what all versions share.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/tile/pair_output.cuh"

namespace day40 {

using course::OutputOf;
using course::PairOf;
using Output = OutputOf<float>;

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
