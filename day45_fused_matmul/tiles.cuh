// The tile of day 45's kernels, where a thread's results are, and the order in which blocks take tiles.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/grid.hpp"
#include "common/tile_shape.cuh"
#include "main_loop.cuh"

namespace day45 {

// The one of step 12 of the ladder: the largest that the registers of a multiprocessor hold, for products of many rows and columns.
using LargeTile = course::TileShape<128, 256, 8, 64, 64, 16, 8, 4, 3>;

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

// The walk of a grid of at most as many blocks as there are tiles. Throws std::invalid_argument when a grid cannot have that many.
template <class T>
EveryTile<T> every_tile(const Factors& factors) {
    const std::size_t down = course::ceil_div<std::size_t>(factors.m(), T::BM);
    const std::size_t across = course::ceil_div<std::size_t>(factors.n(), T::BN);
    return {static_cast<unsigned>(down), static_cast<unsigned>(across),
            course::blocks_for(down * across * factors.count(), 1)};
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

}  // namespace day45
