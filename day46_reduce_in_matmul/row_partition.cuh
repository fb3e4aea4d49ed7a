// Day 46: the tiles that a block of `fused` processes.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/tile/tile_order.cuh"

namespace day46 {

// A part of one row of tiles, from left to right, so that the states of its rows stay in the block.
// T: the tile, BM x BN elements.
template <class T>
struct RowPartition {
    unsigned down;            // rows of tiles in one product
    unsigned across;          // tiles in a row
    unsigned rows_of_tiles;   // in all products
    unsigned blocks_per_row;  // of tiles

    // The tiles of this block.
    class Walk {
      public:
        __device__ explicit Walk(const RowPartition& all)
            : product_(blockIdx.x % all.rows_of_tiles / all.down),
              row_of_tiles_(blockIdx.x % all.rows_of_tiles % all.down),
              first_(all.begin_of(blockIdx.x / all.rows_of_tiles)),
              end_(all.begin_of(blockIdx.x / all.rows_of_tiles + 1)) {}

        __device__ unsigned first() const { return first_; }
        __device__ unsigned count() const { return end_ - first_; }
        __device__ bool has(unsigned i) const { return i < end_; }
        __device__ unsigned next(unsigned i) const { return i + 1; }
        __device__ course::Tile at(unsigned i) const {
            return {product_, std::size_t{row_of_tiles_} * T::BM, std::size_t{i} * T::BN};
        }

      private:
        unsigned product_;
        unsigned row_of_tiles_;
        unsigned first_;
        unsigned end_;
    };
    __device__ Walk walk() const { return Walk(*this); }

  private:
    __device__ unsigned begin_of(unsigned block_in_row) const {
        return static_cast<unsigned>(std::size_t{block_in_row} * across / blocks_per_row);
    }
};

}  // namespace day46
