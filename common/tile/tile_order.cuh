// Tiles of fused products, where a thread's results are, and the order in which blocks take tiles.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "common/tile/loader.cuh"
#include "common/tile/tile_shape.cuh"

namespace course {

// The one of step 12 of the ladder: the largest that the registers of a multiprocessor hold, for products of many rows and columns.
using LargeTile = TileShape<128, 256, 8, 64, 64, 16, 8, 4, 3>;

// Half of it, with half of the threads: two blocks fit on a multiprocessor, and one writes while the other multiplies.
using SquareTile = TileShape<128, 128, 8, 64, 64, 16, 8, 4, 3>;

// An eighth of it, for products of few rows or columns; a thread has 8 x 8 results, so that a block has two warps.
using SmallTile = TileShape<64, 64, 8, 32, 64, 8, 8, 4, 3>;

// Rows and columns of C that a thread has of a tile.
template <class T>
struct ThreadTileCoords {
    Tile tile;
    Place place = place_of_thread<T>(static_cast<int>(threadIdx.x));

    __device__ std::size_t row(int i) const { return tile.row + place.row + place_of<T::LANES_M>(0, i); }
    __device__ std::size_t col(int j) const { return tile.col + place.col + place_of<T::LANES_N>(0, j); }
};

// All tiles of all products, one after the other: block 0 has the first, the one behind the last block's, and so on.
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

// The walk of a grid of at most as many blocks as there are tiles in `count` matrices of m x n. Throws std::invalid_argument when a
// grid cannot have that many.
template <class T>
EveryTile<T> every_tile(std::size_t m, std::size_t n, std::size_t count) {
    const std::size_t down = ceil_div<std::size_t>(m, T::BM);
    const std::size_t across = ceil_div<std::size_t>(n, T::BN);
    return {static_cast<unsigned>(down), static_cast<unsigned>(across), blocks_for(down * across * count, 1)};
}

template <class T>
EveryTile<T> every_tile(const Factors& factors) {
    return every_tile<T>(factors.m(), factors.n(), factors.count());
}

}  // namespace course
