// The tile of day 45's kernels, where a thread's results are, and the order in which blocks take tiles.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "common/tile/tile_shape.cuh"
#include "main_loop.cuh"

namespace day45 {

// The one of step 12 of the ladder: the largest that the registers of a multiprocessor hold, for products of many rows and columns.
using LargeTile = course::TileShape<128, 256, 8, 64, 64, 16, 8, 4, 3>;

// Half of it, with half of the threads: two blocks fit on a multiprocessor, and one writes while the other multiplies.
using SquareTile = course::TileShape<128, 128, 8, 64, 64, 16, 8, 4, 3>;

// An eighth of it, for products of few rows or columns; a thread has 8 x 8 results, so that a block has two warps.
using SmallTile = course::TileShape<64, 64, 8, 32, 64, 8, 8, 4, 3>;

// Rows and columns of C that a thread has of a tile.
template <class T>
struct Results {
    Tile tile;
    course::Place place = course::place_of_thread<T>(static_cast<int>(threadIdx.x));

    __device__ std::size_t row(int i) const {
        return tile.row + place.row + course::place_of<T::LANES_M>(0, i);
    }
    __device__ std::size_t col(int j) const {
        return tile.col + place.col + course::place_of<T::LANES_N>(0, j);
    }
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
    const std::size_t down = course::ceil_div<std::size_t>(m, T::BM);
    const std::size_t across = course::ceil_div<std::size_t>(n, T::BN);
    return {static_cast<unsigned>(down), static_cast<unsigned>(across),
            course::blocks_for(down * across * count, 1)};
}

template <class T>
EveryTile<T> every_tile(const Factors& factors) {
    return every_tile<T>(factors.m(), factors.n(), factors.count());
}

// A block has a share of one row of tiles: of `down` rows of tiles in each product, each is shared by `shares` blocks.
template <class T>
struct ShareOfRow {
    unsigned down;    // rows of tiles in one product
    unsigned across;  // tiles in a row
    unsigned rows;    // of tiles in all products
    unsigned shares;

    // This block's. Worked out once: a division takes as long as many multiply-adds.
    class Walk {
      public:
        __device__ explicit Walk(const ShareOfRow& all)
            : product_(blockIdx.x % all.rows / all.down),
              row_(blockIdx.x % all.rows % all.down),
              first_(all.begin_of(blockIdx.x / all.rows)),
              end_(all.begin_of(blockIdx.x / all.rows + 1)) {}

        __device__ unsigned first() const { return first_; }
        __device__ bool has(unsigned i) const { return i < end_; }
        __device__ unsigned next(unsigned i) const { return i + 1; }
        __device__ Tile at(unsigned i) const {
            return {product_, std::size_t{row_} * T::BM, std::size_t{i} * T::BN};
        }

      private:
        unsigned product_;
        unsigned row_;  // of tiles
        unsigned first_;
        unsigned end_;
    };
    __device__ Walk walk() const { return Walk(*this); }

  private:
    __device__ unsigned begin_of(unsigned share) const {
        return static_cast<unsigned>(std::size_t{share} * across / shares);
    }
};

// All tiles of all products, row of tiles after row of tiles, in equal shares: those of a block follow each other. They are of one row, or
// the end of one and what comes after it.
template <class T>
struct EqualShares {
    unsigned down;    // rows of tiles in one product
    unsigned across;  // tiles in a row
    unsigned all;
    unsigned blocks;  // at most as many as there are tiles

    __device__ const EqualShares& walk() const { return *this; }
    __device__ unsigned first() const { return begin_of(blockIdx.x); }
    __device__ unsigned last() const { return begin_of(blockIdx.x + 1) - 1; }
    __device__ bool has(unsigned i) const { return i < begin_of(blockIdx.x + 1); }
    __device__ unsigned next(unsigned i) const { return i + 1; }
    __device__ Tile at(unsigned i) const {
        const unsigned row = i / across;
        return {row / down, std::size_t{row % down} * T::BM, std::size_t{i % across} * T::BN};
    }

    // The block that has tile i.
    __device__ unsigned block_of(unsigned i) const {
        return static_cast<unsigned>(((std::size_t{i} + 1) * blocks - 1) / all);
    }

  private:
    __device__ unsigned begin_of(unsigned block) const {
        return static_cast<unsigned>(std::size_t{block} * all / blocks);
    }
};

}  // namespace day45
