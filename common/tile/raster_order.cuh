// The order in which blocks take the tiles of C.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"

namespace course {

// Rasterisation order: tiles are taken in bands of `band` rows of tiles, each band column by
// column, every second band from right to left. Blocks that run at the same time then share rows of
// A and columns of B, which come from the L2 cache.
struct RasterOrder {
    int rows;  // of tiles
    int columns;
    int band;

    struct Tile {
        int row;
        int col;
    };
    __device__ Tile tile(int index) const {
        const int number = index / (band * columns);
        const int in_band = index % (band * columns);
        const int height = min(band, rows - number * band);
        const int col = in_band / height;
        return {number * band + in_band % height, number % 2 == 0 ? col : columns - 1 - col};
    }
};

template <class Sum>
RasterOrder make_order(const DeviceMatrix<Sum>& c, int tile_rows, int tile_columns, int band) {
    const auto tiles = [](std::size_t extent, int tile) {
        return static_cast<int>(ceil_div(extent, static_cast<std::size_t>(tile)));
    };
    return {.rows = tiles(c.rows(), tile_rows), .columns = tiles(c.cols(), tile_columns), .band = band};
}

// Blocks for all tiles; throws std::invalid_argument when a grid cannot have as many.
inline unsigned blocks_of(const RasterOrder& order, int blocks_per_tile = 1) {
    return blocks_for(static_cast<std::size_t>(order.rows) * static_cast<std::size_t>(order.columns) *
                          static_cast<std::size_t>(blocks_per_tile),
                      1);
}

}  // namespace course
