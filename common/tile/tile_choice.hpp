// Chooses the tile for a shape, with a model of the time that a product takes with tiles of a
// given size.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/check/matmul_arguments.hpp"
#include "common/device/grid.hpp"
#include "common/device/operands.hpp"

namespace course {

struct Tiling {
    std::size_t rows;  // of C that a cluster computes at a time
    std::size_t columns;
    std::size_t cluster;  // blocks
    std::size_t splits;   // blocks that share the K of a tile
    std::size_t blocks;   // resident on a multiprocessor at a time
    std::size_t depth;    // of a step along K
    // In microseconds. Costs per wave model latency; costs per tile of a multiprocessor model its
    // throughput.
    double launch;
    double tile;  // for each wave of tiles: to start and to end it
    double step;  // for each step of a wave
    double load;  // for each step of each tile of a multiprocessor

    // Clusters process tiles in waves. A wave that is not full takes as long as a full one (tail
    // effect).
    double time(const MatmulShape& shape, std::size_t multiprocessors) const {
        const std::size_t tiles = ceil_div(shape.m, rows) * ceil_div(shape.n, columns);
        const auto steps = static_cast<double>(ceil_div(ceil_div(shape.k, depth), splits));
        const auto rounds = static_cast<double>(ceil_div(tiles, at_once(multiprocessors)));
        const double of_multiprocessor =
            static_cast<double>(tiles * cluster) / static_cast<double>(multiprocessors);
        return launch + rounds * (tile + steps * step) + of_multiprocessor * steps * load;
    }

    // A batch takes as long as one product with the tiles of all its products below each other.
    double time_of_batch(const ProductShape& shape, std::size_t multiprocessors) const {
        const std::size_t m = ceil_div(shape.m, rows) * rows;
        return time({.m = m * shape.count, .n = shape.n, .k = shape.k}, multiprocessors);
    }

    // How many clusters run at a time. The blocks of a cluster run in the same part of the GPU,
    // and its multiprocessors do not always divide into groups of four or eight: about a tenth
    // remain idle.
    std::size_t at_once(std::size_t multiprocessors) const {
        const std::size_t used = cluster > 2 ? multiprocessors * 9 / 10 : multiprocessors;
        return std::max<std::size_t>(used / cluster, 1) * blocks;
    }
};

}  // namespace course
