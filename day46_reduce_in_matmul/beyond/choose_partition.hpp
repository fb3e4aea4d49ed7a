// Day 46: how many blocks share a row of tiles.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "row_partition.cuh"

namespace day46 {

constexpr unsigned kMostBlocksPerRow = 32;

// The number of blocks for each of `rows_of_tiles` rows of `across` tiles that takes the least
// time, with so many blocks on an SM. Starting a block takes as long as kStart tiles.
inline unsigned best_blocks_per_row(std::size_t rows_of_tiles, std::size_t across, std::size_t on_sm) {
    constexpr double kStart = 0.5;
    const auto time = [&](unsigned blocks) {
        const auto rounds =
            course::ceil_div<std::size_t>(rows_of_tiles * blocks, course::multiprocessors() * on_sm);
        return static_cast<double>(rounds) *
               (static_cast<double>(course::ceil_div<std::size_t>(across, blocks)) + kStart);
    };
    unsigned best = 1;
    for (unsigned blocks = 2; blocks <= std::min<std::size_t>(kMostBlocksPerRow, across); ++blocks) {
        if (time(blocks) < time(best)) best = blocks;
    }
    return best;
}

template <class T>
RowPartition<T> row_partition(std::size_t m, std::size_t n, std::size_t count, std::size_t on_sm = 1) {
    const std::size_t down = course::ceil_div<std::size_t>(m, T::BM);
    const std::size_t across = course::ceil_div<std::size_t>(n, T::BN);
    return {static_cast<unsigned>(down), static_cast<unsigned>(across), course::blocks_for(down * count, 1),
            best_blocks_per_row(down * count, across, on_sm)};
}

}  // namespace day46
