// Day 47, beyond: lists of the tiles of an array of bytes with kept elements, and of those without:
// ListedTiles, a parameter Tiles of multiply_kept_tiles (masked_matmul.cuh), and the kernel that
// makes the lists.
//
// An array of bytes has no formula, so build_levels() reads it once and stores three levels:
//
//     tiles       one array: kept tiles from its start on, dropped tiles backwards from its end
//     warps       how much of each warp's part of a tile is kept: a word beside the tile in the list
//     elements    a bit for each, in the order of the tile's threads: a thread loads its own at once
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "bytes.cuh"
#include "common/check/check.hpp"
#include "common/device/operands.hpp"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "common/tile/epilogue.cuh"
#include "common/tile/tile_order.cuh"
#include "masked_matmul.cuh"

namespace day47 {

// The three levels in memory.
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
    // The numbers of entries at the start of the list and at its end. Both are 0 when
    // build_levels() starts.
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

// Four adjacent bytes of a row in one word, the first one lowest. Out-of-range bytes are 0.
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

// Idea: a block for each tile of the array. Each thread reads the bytes of the elements of C that
// it will compute in multiply_kept_tiles.
// Cost removed: in every product, loading a byte per element, and all work in dropped tiles.
// Still limits it: memory. The bytes are read, and an eighth as many are written.
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
    // Blocks append in any order, because no result depends on it.
    auto& entry = warps != 0 ? levels.kept_entry(atomicAdd(&levels.kept(), 1u))
                             : levels.dropped_entry(atomicAdd(&levels.dropped(), 1u));
    entry = {blockIdx.x, warps};
}

// `memory`: that of `levels`, which starts with the two counts.
template <class T>
void launch_build_levels(const course::Batch<const std::uint8_t>& arrays, const Levels<T>& levels,
                         std::uint32_t* memory, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(memory, 0, 2 * sizeof(std::uint32_t), stream));
    build_levels<T><<<levels.all().all, T::THREADS, 0, stream>>>(arrays, levels);
}

// The tiles of an array, with the members of BandTiles. `times`: how many products share one array.
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
