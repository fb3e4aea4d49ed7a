// Which tile suits a shape: a model of the time that a product takes with tiles of a given size.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/check/matmul_arguments.hpp"
#include "common/device/grid.hpp"

namespace day41 {

struct Tiling {
    std::size_t rows;  // of C, that a cluster computes at a time
    std::size_t columns;
    std::size_t cluster;  // blocks
    std::size_t splits;   // blocks that share the K of a tile
    double tile;          // microseconds to begin and end a tile
    double step;          // microseconds per 64 of K, while all multiprocessors are busy

    // Clusters take tiles in waves. A wave that is not full takes as long as one that is.
    double time(const course::MatmulShape& shape, std::size_t multiprocessors) const {
        const auto parts = [](std::size_t whole, std::size_t part) { return course::ceil_div(whole, part); };
        const std::size_t tiles = parts(shape.m, rows) * parts(shape.n, columns);
        const std::size_t waves = parts(tiles, std::max<std::size_t>(multiprocessors / cluster, 1));
        const std::size_t steps = parts(parts(shape.k, 64), splits);
        return static_cast<double>(waves) * (tile + static_cast<double>(steps) * step);
    }
};

}  // namespace day41
