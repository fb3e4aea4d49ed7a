// A formula for the tiles of a band with kept elements, and for those without: BandTiles, a
// parameter Tiles of multiply_kept_tiles (masked_matmul.cuh).
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/device/operands.hpp"
#include "common/tile/epilogue.cuh"
#include "common/tile/tile_order.cuh"
#include "masked_matmul.cuh"

namespace day47 {

// Kept tiles have a kept element, dropped tiles have none. No list is needed.
//
// In row r of the tiles of a product, tiles [(r + begin) / WIDE, (r + end) / WIDE) are kept, as far
// as they exist. The number of kept tiles before a row is a difference of two sums with a formula,
// and bisection finds the row of tile i.
template <class T>
class BandTiles {
    static constexpr int WIDE = T::BN / T::BM;
    static_assert(T::BN % T::BM == 0, "BandTiles: BN is a multiple of BM");

  public:
    BandTiles(const Band& band, const course::Operands& operands)
        : band_(band),
          all_(course::every_tile<T>(operands)),
          begin_(rounded_down(-std::int64_t{band.below})),
          end_(rounded_down(T::BM - 1 + std::int64_t{band.above}) + WIDE) {
        kept_in_product_ = kept_before(all_.down);
        dropped_in_product_ = all_.down * all_.across - kept_in_product_;
        products_ = static_cast<unsigned>(operands.count());
    }

    __host__ __device__ unsigned kept() const { return kept_in_product_ * products_; }
    __host__ __device__ unsigned dropped() const { return dropped_in_product_ * products_; }

    // Where kept tile i of all products is.
    __device__ course::Tile kept_tile(unsigned i) const {
        const unsigned in_product = i % kept_in_product_;
        const auto before = [&](unsigned row) { return kept_before(row); };
        const unsigned row = row_of(in_product, before);
        return tile(i / kept_in_product_, row, begin_of(row) + in_product - before(row));
    }

    __device__ course::Tile dropped_tile(unsigned i) const {
        const unsigned in_product = i % dropped_in_product_;
        const auto before = [&](unsigned row) { return row * all_.across - kept_before(row); };
        const unsigned row = row_of(in_product, before);
        const unsigned in_row = in_product - before(row);
        const unsigned begin = begin_of(row);
        return tile(i / dropped_in_product_, row, in_row < begin ? in_row : in_row - begin + end_of(row));
    }

    // Which part of this warp's share of the tile is kept.
    __device__ Part of_warp(unsigned, const course::ThreadTileCoords<T>& at) const {
        const course::Place place = course::place_of_warp<T>(static_cast<int>(threadIdx.x) / 32);
        const auto corner = static_cast<std::int64_t>(at.tile.col + place.col) -
                            static_cast<std::int64_t>(at.tile.row + place.row);  // col - row
        const std::int64_t least = corner - (T::WM - 1);
        const std::int64_t most = corner + (T::WN - 1);
        if (-std::int64_t{band_.below} <= least && most <= band_.above) return Part::kAll;
        return most < -std::int64_t{band_.below} || band_.above < least ? Part::kNothing : Part::kSome;
    }

    // A warp could be idle only in a tile that the diagonal crosses, but the tile ends when its
    // other warps have finished. So no warp is.
    __device__ bool is_idle(unsigned) const { return false; }

    // A functor: is element (i, j) of this thread kept?
    __device__ auto elements(unsigned, const course::ThreadTileCoords<T>& at) const {
        return [this, at](int i, int j) { return band_.keeps(at.row(i), at.col(j)); };
    }

  private:
    // distance / BM, rounded down.
    static int rounded_down(std::int64_t distance) {
        return static_cast<int>((distance - (distance < 0 ? T::BM - 1 : 0)) / T::BM);
    }

    // The sum of min(x / WIDE, across) for all x in [0, end).
    __host__ __device__ unsigned sum_up_to(int end) const {
        if (end <= 0) return 0;
        const auto all = static_cast<unsigned>(end);
        const unsigned growing = min(all, all_.across * WIDE);
        const unsigned level = growing / WIDE;
        return static_cast<unsigned>(std::uint64_t{level} * (level - 1) / 2) * WIDE +
               level * (growing % WIDE) + (all - growing) * all_.across;
    }

    // Kept tiles in the rows of tiles before `row`. Sums may wrap; their difference is right.
    __host__ __device__ unsigned kept_before(unsigned row) const {
        const int r = static_cast<int>(row);
        return (sum_up_to(r + end_) - sum_up_to(end_)) - (sum_up_to(r + begin_) - sum_up_to(begin_));
    }

    // The row of tile i, when before(r) tiles are in the rows before r.
    template <class Before>
    __device__ unsigned row_of(unsigned i, Before before) const {
        unsigned low = 0;
        unsigned high = all_.down - 1;
        while (low < high) {
            const unsigned middle = (low + high) / 2;
            if (before(middle + 1) <= i) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    __device__ unsigned clamped(int row) const {
        return min(static_cast<unsigned>(max(row, 0)) / WIDE, all_.across);
    }
    __device__ unsigned begin_of(unsigned row) const { return clamped(static_cast<int>(row) + begin_); }
    __device__ unsigned end_of(unsigned row) const { return clamped(static_cast<int>(row) + end_); }

    __device__ course::Tile tile(unsigned product, unsigned row, unsigned col) const {
        return {product, std::size_t{row} * T::BM, std::size_t{col} * T::BN};
    }

    Band band_;
    course::EveryTile<T> all_;
    int begin_;
    int end_;
    unsigned kept_in_product_;
    unsigned dropped_in_product_;
    unsigned products_;
};

}  // namespace day47
