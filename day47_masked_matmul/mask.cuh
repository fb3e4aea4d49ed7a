// Masks as kernels see them, element by element or tile by tile.
//
//     of(product).keeps(row, col)           is this element kept?
//
//     kept(), dropped()                     how many tiles of all products keep an element, and how many keep none
//     kept_tile(i), dropped_tile(i)         where the i-th of them is
//     of_warp(i, at)                        how much of this warp's part of kept tile i is kept
//     is_idle(i)                            nothing, so that the warp need not multiply? A mask may leave that open, and say no
//     elements(i, at)                       a functor: is element (i, j) of the thread's results in kept tile i kept?
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/factors.hpp"
#include "common/device/pack.cuh"
#include "common/tile/tile_order.cuh"

namespace day47 {

// How much of something is kept, as two bits: is any of it, is all of it?
enum class Part : unsigned { kNothing = 0, kSome = 1, kAll = 3 };

// --- A band along the diagonal ---------------------------------------------------------------------------------------

// -below <= column - row <= above. Both are less than 2^31, also where they are negative, and -below <= above.
struct Band {
    int below;
    int above;

    __device__ const Band& of(std::size_t) const { return *this; }

    // One comparison for both ends: what is below the band wraps to more than the band is wide.
    __device__ bool keeps(std::size_t row, std::size_t col) const {
        const unsigned from_end =
            static_cast<unsigned>(col) - static_cast<unsigned>(row) + static_cast<unsigned>(below);
        return from_end <= static_cast<unsigned>(below) + static_cast<unsigned>(above);
    }
};

// The tiles of a band, counted and found without a list of them.
//
// In row r of a product's tiles, those with something to keep are [(r + begin) / WIDE, (r + end) / WIDE), as far as they exist. How many
// there are before a row is the difference of two sums that have a formula, and which row a tile is in is found by bisection.
template <class T>
class BandTiles {
    static constexpr int WIDE = T::BN / T::BM;
    static_assert(T::BN % T::BM == 0, "BandTiles: a tile is as wide as it is high, or some times as wide");

  public:
    BandTiles(const Band& band, const course::Factors& factors)
        : band_(band),
          all_(course::every_tile<T>(factors)),
          begin_(rounded_down(-std::int64_t{band.below})),
          end_(rounded_down(T::BM - 1 + std::int64_t{band.above}) + WIDE) {
        kept_in_product_ = kept_before(all_.down);
        dropped_in_product_ = all_.down * all_.across - kept_in_product_;
        products_ = static_cast<unsigned>(factors.count());
    }

    __host__ __device__ unsigned kept() const { return kept_in_product_ * products_; }
    __host__ __device__ unsigned dropped() const { return dropped_in_product_ * products_; }

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

    __device__ Part of_warp(unsigned, const course::ThreadTileCoords<T>& at) const {
        const course::Place place = course::place_of_warp<T>(static_cast<int>(threadIdx.x) / 32);
        const auto corner = static_cast<std::int64_t>(at.tile.col + place.col) -
                            static_cast<std::int64_t>(at.tile.row + place.row);  // column - row
        const std::int64_t least = corner - (T::WM - 1);
        const std::int64_t most = corner + (T::WN - 1);
        if (-std::int64_t{band_.below} <= least && most <= band_.above) return Part::kAll;
        return most < -std::int64_t{band_.below} || band_.above < least ? Part::kNothing : Part::kSome;
    }

    // Where the diagonal crosses a tile few of its warps have nothing to do, and the others need all of their time.
    __device__ bool is_idle(unsigned) const { return false; }

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

    // In the rows of tiles before `row`. Sums may wrap, their difference does not.
    __host__ __device__ unsigned kept_before(unsigned row) const {
        const int r = static_cast<int>(row);
        return (sum_up_to(r + end_) - sum_up_to(end_)) - (sum_up_to(r + begin_) - sum_up_to(begin_));
    }

    // The row with tile i, if there are before(r) tiles in those before r.
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

// --- An array of bytes -----------------------------------------------------------------------------------------------

// One array, or one for each product.
struct Bytes {
    course::Batch<const std::uint8_t> arrays;
    bool one_for_all;

    struct Array {
        course::DeviceMatrix<const std::uint8_t> bytes;
        __device__ bool keeps(std::size_t row, std::size_t col) const { return bytes(row, col) != 0; }
    };
    __device__ Array of(std::size_t product) const { return {arrays[one_for_all ? 0 : product]}; }
};

// What is known of the arrays: their levels, from tiles down to elements.
//
//     tiles       a list of those that keep something from its begin on, and of the others from its end on
//     warps       how much of each warp's part of a tile is kept, in the list beside the tile
//     elements    a bit for each, in the order in which the tile's threads have them: a thread reads its own in one access
template <class T>
class Levels {
    static constexpr int WARPS = T::THREADS / 32;
    static constexpr int WORDS = T::TM * T::TN / 32;  // of bits, for each thread
    static_assert(WARPS <= 16, "Levels: two bits for each warp must fit in a word");
    static_assert(T::TM * T::TN % 32 == 0, "Levels: a thread's bits are whole words");

  public:
    struct Entry {
        unsigned tile;   // of all arrays, as EveryTile counts them
        unsigned warps;  // two bits for each: a Part
    };
    using Bits = course::Pack<std::uint32_t, WORDS>;

    static std::size_t size(std::size_t m, std::size_t n, std::size_t arrays) {
        return kHeader + std::size_t{course::every_tile<T>(m, n, arrays).all} * (T::THREADS * WORDS + 2);
    }

    // In `memory`: size() words, aligned to 16 bytes.
    Levels(std::uint32_t* memory, std::size_t m, std::size_t n, std::size_t arrays)
        : all_(course::every_tile<T>(m, n, arrays)),
          counts_(memory),
          bits_(reinterpret_cast<Bits*>(memory + kHeader)),
          list_(reinterpret_cast<Entry*>(bits_ + std::size_t{all_.all} * T::THREADS)) {}

    __host__ __device__ const course::EveryTile<T>& all() const { return all_; }
    // How many entries are at the begin of the list, and at its end. Zeros when the levels are built.
    __device__ unsigned& kept() const { return counts_[0]; }
    __device__ unsigned& dropped() const { return counts_[1]; }
    __device__ Entry& kept_entry(unsigned i) const { return list_[i]; }
    __device__ Entry& dropped_entry(unsigned i) const { return list_[all_.all - 1 - i]; }
    __device__ Bits& bits(unsigned tile) const { return bits_[std::size_t{tile} * T::THREADS + threadIdx.x]; }

  private:
    static constexpr std::size_t kHeader = 4;  // words; two of them are counts

    course::EveryTile<T> all_;
    std::uint32_t* counts_;
    Bits* bits_;
    Entry* list_;
};

// The tiles of an array. One for all products is gone through once for each of them.
template <class T>
class ListedTiles {
  public:
    ListedTiles(const Levels<T>& levels, unsigned times) : levels_(levels), times_(times) {}

    __device__ unsigned kept() const { return levels_.kept() * times_; }
    __device__ unsigned dropped() const { return levels_.dropped() * times_; }

    __device__ course::Tile kept_tile(unsigned i) const {
        return levels_.all().at(kept_entry(i).tile + i / levels_.kept() * levels_.all().all);
    }
    __device__ course::Tile dropped_tile(unsigned i) const {
        const unsigned tile = levels_.dropped_entry(i % levels_.dropped()).tile;
        return levels_.all().at(tile + i / levels_.dropped() * levels_.all().all);
    }

    __device__ Part of_warp(unsigned i, const course::ThreadTileCoords<T>&) const { return of_warp(i); }
    __device__ bool is_idle(unsigned i) const { return of_warp(i) == Part::kNothing; }

    __device__ auto elements(unsigned i, const course::ThreadTileCoords<T>&) const {
        const auto bits = levels_.bits(kept_entry(i).tile);
        return [bits](int row, int col) {
            const int e = row * T::TN + col;
            return (bits.value[e / 32] >> e % 32 & 1) != 0;
        };
    }

  private:
    __device__ typename Levels<T>::Entry kept_entry(unsigned i) const {
        return levels_.kept_entry(i % levels_.kept());
    }
    __device__ Part of_warp(unsigned i) const {
        return static_cast<Part>(kept_entry(i).warps >> threadIdx.x / 32 * 2 & 3);
    }

    Levels<T> levels_;
    unsigned times_;
};

}  // namespace day47
