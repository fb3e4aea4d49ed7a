// Day 47: matrix products of which a mask keeps a part; all other elements are filled with one
// number. PMPP chapter 6 (4th and 5th edition).
//
//   version              what is new                                 what limits it
//   thread_per_element   a thread for each element of C              two loads per multiply-add
//   unfused              the whole product, then a pass that fills   all multiply-adds; C written twice
//   element_mask         the epilogue applies the mask               all multiply-adds
//   skip_tiles           tiles without a kept element are filled,    multiply-adds of the other tiles;
//                        not multiplied                              writing C
//   skip_large_tiles     the same, tiles twice as wide: fewer loads  more dropped elements per tile
//
// The main loop, course::multiply_tiles(), is that of day 45 (common/tile/main_loop.cuh). A version
// decides which tiles it multiplies and what its epilogue does with their sums.
//
//   ./course run day47 --only skip_tiles --size 4x512x512x64
//   ./course inspect day47 --only skip_tiles --size 1x512x512x64
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/factors.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "common/tile/epilogue.cuh"
#include "common/tile/main_loop.cuh"
#include "common/tile/tile_order.cuh"

namespace day47 {

// --- Two masks, element by element ------------------------------------------------------------------

// Keeps elements near the diagonal: -below <= col - row <= above. Causal attention: above = 0, and
// `below` is larger than the matrix. Both are less than 2^31, also if negative, and -below <=
// above.
struct Band {
    int below;
    int above;

    __device__ const Band& of(std::size_t) const { return *this; }  // one band for all products

    // One comparison for both ends: below the band the difference wraps to more than the band's
    // width.
    __device__ bool keeps(std::size_t row, std::size_t col) const {
        const unsigned from_end =
            static_cast<unsigned>(col) - static_cast<unsigned>(row) + static_cast<unsigned>(below);
        return from_end <= static_cast<unsigned>(below) + static_cast<unsigned>(above);
    }
};

// Keeps elements whose byte is not 0. One array for all products, or one for each of them.
struct Bytes {
    course::Batch<const std::uint8_t> arrays;
    bool one_for_all;

    struct Array {
        course::DeviceMatrix<const std::uint8_t> bytes;
        __device__ bool keeps(std::size_t row, std::size_t col) const { return bytes(row, col) != 0; }
    };
    __device__ Array of(std::size_t product) const { return {arrays[one_for_all ? 0 : product]}; }
};

// --- The whole task in one plain kernel -------------------------------------------------------------

// Element (row, col) of op(matrix).
__device__ inline float element_of(const course::DeviceMatrix<const float>& matrix, course::Op op,
                                   std::size_t row, std::size_t col) {
    return op == course::Op::kNone ? matrix(row, col) : matrix(col, row);
}

// Idea: a thread for each element of C. If the mask drops the element, the thread stores `fill` and
// loads nothing.
// Cost removed: multiply-adds where all 32 elements of a warp are dropped. Where the mask keeps one
// of them, the warp takes as long as if all were kept.
// Still limits it: two loads for each multiply-add.
template <class Mask>
__global__ void multiply_kept_elements(const course::Factors factors, const Mask mask,
                                       const course::Batch<float> c, float alpha, float fill) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t row_of_all = i / factors.n();  // the rows of all products, counted through
    const std::size_t product = row_of_all / factors.m();
    if (product >= factors.count()) return;
    const std::size_t row = row_of_all % factors.m();
    const std::size_t col = i % factors.n();
    float result = fill;
    if (mask.of(product).keeps(row, col)) {
        const course::DeviceMatrix<const float> a = factors.a[product];
        const course::DeviceMatrix<const float> b = factors.b[product];
        float sum = 0;
        for (std::size_t k = 0; k < factors.k(); ++k)
            sum += element_of(a, factors.op_a, row, k) * element_of(b, factors.op_b, k, col);
        result = alpha * sum;
    }
    c[product](row, col) = result;
}

// --- A fast product, then the mask ------------------------------------------------------------------

// Idea: a product from a library, here day 45's, computes all of C. The mask follows in
// fill_dropped.
// Cost removed: two loads per multiply-add. Tiles are in shared memory, fragments in registers.
// Still limits it: multiply-adds, also of elements that are not wanted.
//
// T: the shape of a tile. BLOCKS: resident blocks per SM. LoaderA, LoaderB: copy float by float, or
// 16 bytes at a time. multiply_tiles() calls the epilogue, a lambda, once for each finished tile: a
// thread has TM x TN sums, and sums[i][j] belongs to row at.row(i) and column at.col(j).
template <class T, int BLOCKS, class LoaderA, class LoaderB>
__global__ __launch_bounds__(T::THREADS,
                             BLOCKS) void multiply_all(const __grid_constant__ course::Factors factors,
                                                       const __grid_constant__ course::EveryTile<T> tiles,
                                                       const __grid_constant__ course::Batch<float> c,
                                                       const float alpha) {
    extern __shared__ float4 shared[];
    const auto epilogue = [&](const course::Tile& tile, const float(&sums)[T::TM][T::TN]) {
        const course::ThreadTileCoords<T> at{tile};
        course::write_tile(at, c[tile.product], [&](int i, int j) { return alpha * sums[i][j]; });
    };
    course::multiply_tiles<T, LoaderA, LoaderB>(factors, tiles, reinterpret_cast<course::Stage<T>*>(shared),
                                                course::MultiplyAdd{}, epilogue);
}

// Idea: the second pass of `unfused`. A warp for each row of C stores `fill` in dropped elements.
// Cost removed: none. This pass is the cost that the next version removes.
// Still limits it: memory. Each dropped element has been written before.
template <class Mask>
__global__ void fill_dropped(const Mask mask, const course::Batch<float> c, float fill) {
    const std::size_t rows = c.first.rows() * c.count;
    const std::size_t row_of_all = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / course::kWarpSize;
    if (row_of_all >= rows) return;
    const std::size_t product = row_of_all / c.first.rows();
    const std::size_t row = row_of_all % c.first.rows();
    const course::DeviceMatrix<float> matrix = c[product];
    const auto of_product = mask.of(product);
    for (std::size_t col = threadIdx.x % course::kWarpSize; col < matrix.cols(); col += course::kWarpSize) {
        if (!of_product.keeps(row, col)) matrix(row, col) = fill;
    }
}

// --- The mask in the epilogue -----------------------------------------------------------------------

// Idea: the epilogue applies the mask to each element while its sum is still in a register.
// Cost removed: the second pass, and writing dropped elements twice.
// Still limits it: multiply-adds. With a causal mask, half of them are for nothing.
template <class T, int BLOCKS, class LoaderA, class LoaderB, class Mask>
__global__ __launch_bounds__(T::THREADS, BLOCKS) void multiply_and_mask(
    const __grid_constant__ course::Factors factors, const __grid_constant__ course::EveryTile<T> tiles,
    const __grid_constant__ Mask mask, const __grid_constant__ course::Batch<float> c, const float alpha,
    const float fill) {
    extern __shared__ float4 shared[];
    const auto epilogue = [&](const course::Tile& tile, const float(&sums)[T::TM][T::TN]) {
        const course::ThreadTileCoords<T> at{tile};
        const auto of_product = mask.of(tile.product);
        course::write_tile(at, c[tile.product], [&](int i, int j) {
            return of_product.keeps(at.row(i), at.col(j)) ? alpha * sums[i][j] : fill;
        });
    };
    course::multiply_tiles<T, LoaderA, LoaderB>(factors, tiles, reinterpret_cast<course::Stage<T>*>(shared),
                                                course::MultiplyAdd{}, epilogue);
}

// --- Only tiles that keep something -----------------------------------------------------------------

// How much of a warp's part of a tile is kept, as two bits: is any element, are all?
enum class Part : unsigned { kNothing = 0, kSome = 1, kAll = 3 };

// The tiles of a band: kept ones have a kept element, dropped ones have none. Both are counted and
// found by a formula, without a list.
//
// In row r of the tiles of a product, tiles [(r + begin) / WIDE, (r + end) / WIDE) are kept, as far
// as they exist. The number of kept tiles before a row is a difference of two sums with a formula,
// and bisection finds the row of tile i.
template <class T>
class BandTiles {
    static constexpr int WIDE = T::BN / T::BM;
    static_assert(T::BN % T::BM == 0, "BandTiles: BN is a multiple of BM");

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

    // How much of this warp's part of the tile is kept.
    __device__ Part of_warp(unsigned, const course::ThreadTileCoords<T>& at) const {
        const course::Place place = course::place_of_warp<T>(static_cast<int>(threadIdx.x) / 32);
        const auto corner = static_cast<std::int64_t>(at.tile.col + place.col) -
                            static_cast<std::int64_t>(at.tile.row + place.row);  // col - row
        const std::int64_t least = corner - (T::WM - 1);
        const std::int64_t most = corner + (T::WN - 1);
        if (-std::int64_t{band_.below} <= least && most <= band_.above) return Part::kAll;
        return most < -std::int64_t{band_.below} || band_.above < least ? Part::kNothing : Part::kSome;
    }

    // Is this warp idle in the tile, so that it need not multiply? Where the diagonal crosses a
    // tile, few warps could be, and the tile takes as long as its other warps. So none is.
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

// Stores `fill` in a tile of C: all threads of the block, row after row.
template <class T>
__device__ void fill_tile(const course::Tile& tile, const course::DeviceMatrix<float>& matrix, float fill) {
    constexpr unsigned QUADS = T::BN / 4;
    const std::size_t col = tile.col + threadIdx.x % QUADS * 4;
    const std::size_t end = min(tile.row + T::BM, matrix.rows());
    const bool in_packs = course::has_aligned_rows(matrix) && col + 4 <= matrix.cols();
    for (std::size_t row = tile.row + threadIdx.x / QUADS; row < end; row += T::THREADS / QUADS) {
        float* const to = &matrix(row, col);
        if (in_packs) {
            course::Pack<float, 4>{{fill, fill, fill, fill}}.store(to);
        } else {
            for (int c = 0; c < 4; ++c) {
                if (col + c < matrix.cols()) to[c] = fill;
            }
        }
    }
}

// The order in which multiply_tiles() takes tiles: kept tiles only, dealt to the blocks in turn.
template <class Tiles>
struct KeptTiles {
    const Tiles& tiles;

    __device__ unsigned first() const { return blockIdx.x; }
    __device__ bool has(unsigned i) const { return i < tiles.kept(); }
    __device__ unsigned next(unsigned i) const { return i + gridDim.x; }
    __device__ course::Tile at(unsigned i) const { return tiles.kept_tile(i); }
    __device__ bool is_idle(unsigned i) const { return tiles.is_idle(i); }
};

// Idea: only kept tiles are multiplied. After each of them a block fills its share of the dropped
// tiles, so that one block stores while the other block of the SM multiplies. The mask is applied
// element by element only where a warp's part of a tile is kept in part.
// Cost removed: loads and multiply-adds of dropped tiles; most evaluations of the mask.
// Still limits it: the multiply-adds of kept tiles and the stores of C, which hardly overlap.
//
// Tiles: BandTiles above, or ListedTiles below. Dropped tiles are dealt to the blocks in reverse
// order: a block with one kept tile less has one dropped tile more.
template <class T, int BLOCKS, class LoaderA, class LoaderB, class Tiles>
__global__ __launch_bounds__(T::THREADS,
                             BLOCKS) void multiply_kept_tiles(const __grid_constant__ course::Factors factors,
                                                              const __grid_constant__ Tiles tiles,
                                                              const __grid_constant__ course::Batch<float> c,
                                                              const float alpha, const float fill) {
    extern __shared__ float4 shared[];
    unsigned kept = blockIdx.x;                     // the tile that is multiplied
    unsigned dropped = gridDim.x - 1 - blockIdx.x;  // the next tile to fill
    const auto fill_tiles = [&](unsigned most) {
        for (unsigned n = 0; n < most && dropped < tiles.dropped(); ++n) {
            const course::Tile tile = tiles.dropped_tile(dropped);
            fill_tile<T>(tile, c[tile.product], fill);
            dropped += gridDim.x;
        }
    };
    const auto epilogue = [&](const course::Tile& tile, const float(&sums)[T::TM][T::TN]) {
        const course::ThreadTileCoords<T> at{tile};
        const course::DeviceMatrix<float> matrix = c[tile.product];
        if (tiles.of_warp(kept, at) == Part::kAll) {
            course::write_tile(at, matrix, [&](int i, int j) { return alpha * sums[i][j]; });
        } else {
            const auto keeps = tiles.elements(kept, at);
            course::write_tile(at, matrix,
                               [&](int i, int j) { return keeps(i, j) ? alpha * sums[i][j] : fill; });
        }
        kept += gridDim.x;
        fill_tiles(course::ceil_div(tiles.dropped(), tiles.kept()));
    };
    course::multiply_tiles<T, LoaderA, LoaderB>(factors, KeptTiles<Tiles>{tiles},
                                                reinterpret_cast<course::Stage<T>*>(shared),
                                                course::MultiplyAdd{}, epilogue);
    fill_tiles(tiles.dropped());  // what is left; all of them if no tile is kept
}

// --- The tiles of an array of bytes -----------------------------------------------------------------

// An array of bytes has no formula, so build_levels() reads it once and stores three levels:
//
//     tiles       one list: kept tiles from its begin on, dropped tiles from its end on
//     warps       how much of each warp's part of a tile is kept: a word beside the tile in the list
//     elements    a bit for each, in the order of the tile's threads: a thread loads its own at once
template <class T>
class Levels {
    static constexpr int WARPS = T::THREADS / 32;
    static constexpr int WORDS = T::TM * T::TN / 32;  // of bits, per thread
    static_assert(WARPS <= 16, "Levels: two bits for each warp must fit in a word");
    static_assert(T::TM * T::TN % 32 == 0, "Levels: a thread's bits are whole words");

  public:
    struct Entry {
        unsigned tile;   // of all arrays, numbered as by EveryTile
        unsigned warps;  // a Part for each warp, warp 0 lowest
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
    // Entries at the begin of the list, and at its end. Both are 0 when build_levels() starts.
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

// Four neighbours of a row in one word, the first one lowest. Out-of-range bytes are 0.
__device__ inline std::uint32_t four_bytes(const course::DeviceMatrix<const std::uint8_t>& matrix,
                                           std::size_t row, std::size_t col) {
    const std::uint8_t* const from = &matrix(row, col);
    if (row < matrix.rows() && col + 4 <= matrix.cols() && reinterpret_cast<std::uintptr_t>(from) % 4 == 0)
        return *reinterpret_cast<const std::uint32_t*>(from);
    std::uint32_t word = 0;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        if (row < matrix.rows() && col + c < matrix.cols()) word |= std::uint32_t{from[c]} << 8 * c;
    }
    return word;
}

// Idea: a block for each tile of the array. Each thread looks at the elements of C that it will
// compute.
// Cost removed: with every product, a byte loaded per element; and all work in dropped tiles.
// Still limits it: memory. The bytes are read, an eighth of them is written.
template <class T>
__global__ __launch_bounds__(T::THREADS) void build_levels(const course::Batch<const std::uint8_t> arrays,
                                                           const Levels<T> levels) {
    __shared__ unsigned warps;
    if (threadIdx.x == 0) warps = 0;
    __syncthreads();
    const course::ThreadTileCoords<T> at{levels.all().at(blockIdx.x)};
    const course::DeviceMatrix<const std::uint8_t> matrix = arrays[at.tile.product];
    std::uint32_t fours[T::TM][T::TN / 4];  // all loads are issued before the first use
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
        for (int j = 0; j < T::TN; j += 4)
            fours[i][j / 4] = four_bytes(matrix, at.row(i), at.col(j));
    }
    typename Levels<T>::Bits bits{};
#pragma unroll
    for (int e = 0; e < T::TM * T::TN; ++e) {
        const std::uint32_t four = fours[e / T::TN][e % T::TN / 4];
        if ((four >> e % 4 * 8 & 0xff) != 0) bits.value[e / 32] |= 1u << e % 32;
    }
    levels.bits(blockIdx.x) = bits;

    int kept = 0;
    for (const std::uint32_t word : bits.value)
        kept += __popc(word);
    int rows = 0;  // of this thread, in range
    int cols = 0;
    for (int i = 0; i < T::TM; ++i)
        rows += at.row(i) < matrix.rows() ? 1 : 0;
    for (int j = 0; j < T::TN; ++j)
        cols += at.col(j) < matrix.cols() ? 1 : 0;
    const bool any = __any_sync(course::kWholeWarp, kept != 0);
    const bool all = any && __all_sync(course::kWholeWarp, kept == rows * cols);
    const Part part = all ? Part::kAll : any ? Part::kSome : Part::kNothing;
    if (threadIdx.x % course::kWarpSize == 0)
        atomicOr(&warps, static_cast<unsigned>(part) << threadIdx.x / course::kWarpSize * 2);
    __syncthreads();
    if (threadIdx.x != 0) return;
    // Blocks append in any order: no result depends on it.
    auto& entry = warps != 0 ? levels.kept_entry(atomicAdd(&levels.kept(), 1u))
                             : levels.dropped_entry(atomicAdd(&levels.dropped(), 1u));
    entry = {blockIdx.x, warps};
}

// The tiles of an array, as BandTiles. `times`: products that share one array.
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
