// The tiles of fused matrix products, the results of a thread in them, and the order in which
// blocks take them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "common/tile/loader.cuh"
#include "common/tile/tile_shape.cuh"

namespace course {

// The tile of step 12 of the ladder: the largest for which the registers of an SM suffice.
using LargeTile = TileShape<128, 256, 8, 64, 64, 16, 8, 4, 3>;

// Half of it with half of the threads: two blocks fit on an SM. One stores while the other
// multiplies.
using SquareTile = TileShape<128, 128, 8, 64, 64, 16, 8, 4, 3>;

// An eighth of it, for products of few rows or columns: 8 x 8 results of a thread, two warps in a
// block.
using SmallTile = TileShape<64, 64, 8, 32, 64, 8, 8, 4, 3>;

// The rows and columns of C that a thread computes of a tile: sums[i][j] is element (row(i),
// col(j)).
template <class T>
struct ThreadTileCoords {
    Tile tile;
    Place place = place_of_thread<T>(static_cast<int>(threadIdx.x));

    __device__ std::size_t row(int i) const { return tile.row + place.row + place_of<T::LANES_M>(0, i); }
    __device__ std::size_t col(int j) const { return tile.col + place.col + place_of<T::LANES_N>(0, j); }
};

// All tiles of all products, in turn: block b has tiles b, b + gridDim.x, b + 2 gridDim.x ...
template <class T>
struct EveryTile {
    unsigned down;
    unsigned across;
    unsigned all;

    __device__ const EveryTile& walk() const { return *this; }
    __device__ unsigned first() const { return blockIdx.x; }
    __device__ bool has(unsigned i) const { return i < all; }
    __device__ unsigned next(unsigned i) const { return i + gridDim.x; }
    __device__ Tile at(unsigned i) const {
        const unsigned in_product = i % (down * across);
        return {i / (down * across), std::size_t{in_product / across} * T::BM,
                std::size_t{in_product % across} * T::BN};
    }
};

// The tiles of `count` matrices of m x n. Throws std::invalid_argument if a grid cannot have so
// many blocks.
template <class T>
EveryTile<T> every_tile(std::size_t m, std::size_t n, std::size_t count) {
    const std::size_t down = ceil_div<std::size_t>(m, T::BM);
    const std::size_t across = ceil_div<std::size_t>(n, T::BN);
    return {static_cast<unsigned>(down), static_cast<unsigned>(across), blocks_for(down * across * count, 1)};
}

template <class T>
EveryTile<T> every_tile(const Operands& operands) {
    return every_tile<T>(operands.m(), operands.n(), operands.count());
}

}  // namespace course
