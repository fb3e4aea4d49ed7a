// The lists of the fused versions: which tiles a block multiplies, the lists of candidates of a
// block, the pieces that it stores for the selection.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <limits>

#include "common/device/warp.cuh"
#include "common/tile/main_loop.cuh"
#include "common/tile/tile_order.cuh"
#include "keys.cuh"
#include "thresholds.cuh"

namespace day48 {

// 128 x 256 results of a block, 16 x 8 of a thread.
using T = course::LargeTile;

// All tiles of all products, row of tiles after row of tiles, in equal shares. The tiles of a block
// follow each other: in one row of tiles, or from the end of one row into the next ones.
struct EqualShares {
    unsigned down;    // rows of tiles in one product
    unsigned across;  // tiles in a row
    unsigned all;
    unsigned blocks;  // at most as many as there are tiles

    __device__ unsigned first() const { return begin_of(blockIdx.x); }
    __device__ unsigned last() const { return begin_of(blockIdx.x + 1) - 1; }
    __device__ bool has(unsigned i) const { return i < begin_of(blockIdx.x + 1); }
    __device__ unsigned next(unsigned i) const { return i + 1; }
    __device__ course::Tile at(unsigned i) const {
        const unsigned row = i / across;
        return {row / down, std::size_t{row % down} * T::BM, std::size_t{i % across} * T::BN};
    }

    // The block that multiplies tile i.
    __device__ unsigned block_of(unsigned i) const {
        return static_cast<unsigned>(((std::size_t{i} + 1) * blocks - 1) / all);
    }

  private:
    __device__ unsigned begin_of(unsigned block) const {
        return static_cast<unsigned>(std::size_t{block} * all / blocks);
    }
};

// A block has a list of candidates for each row of its tile. A list has room for the keys of a
// shortened list, for a tile's columns before there is a threshold, and for k more until the list
// counts as full. One more tile's columns must fit, because a list that is not full takes a whole
// tile.
struct ListSize {
    unsigned k;
    unsigned kept;  // by a shortened list: k and some more, so that the search ends sooner
    unsigned room;

    explicit ListSize(std::size_t best)
        : k(static_cast<unsigned>(best)), kept(k + k / 8), room(kept + T::BN + k + T::BN) {}

    __device__ bool is_full(unsigned listed) const { return listed > room - T::BN; }
    __device__ bool is_worth_shortening(unsigned listed) const { return listed > (kept + room - T::BN) / 2; }
};

// The output of blocks in global memory: a piece for each row of tiles and each block with tiles of
// it. Piece r + b belongs to row of tiles r and block b. Both ascend together, so no two pairs have
// the same sum.
struct Pieces {
    EqualShares tiles;
    unsigned size;
    // The best of the block's columns: `size` keys per row, or fewer and then kNoKey.
    Key* keys;
    // A published threshold per row, as a rank (keys.cuh); see publish_bounds(). All bits set: not
    // published yet.
    unsigned* ranks;

    __device__ unsigned first_block(std::size_t row_of_tiles) const {
        return tiles.block_of(static_cast<unsigned>(row_of_tiles * tiles.across));
    }
    __device__ unsigned blocks(std::size_t row_of_tiles) const {
        const auto last = static_cast<unsigned>((row_of_tiles + 1) * tiles.across - 1);
        return tiles.block_of(last) - first_block(row_of_tiles) + 1;
    }
    __device__ Key* keys_of(std::size_t row_of_tiles, unsigned block, unsigned row_in_tile) const {
        return keys + ((row_of_tiles + block) * T::BM + row_in_tile) * size;
    }
    __device__ unsigned& published(std::size_t row_of_tiles, unsigned block, unsigned row_in_tile) const {
        return ranks[(row_of_tiles + block) * T::BM + row_in_tile];
    }
};

// A block's state of the rows of its tile, in shared memory.
struct RowState {
    unsigned listed[T::BM];  // keys in the list of the row
    // The threshold of the row. A value that is not less than it cannot be among the k best: each
    // of k known elements is less than that value, or equal and in a lower column. NaN until k
    // elements are known, so that no value is dropped.
    float bound[T::BM];
    unsigned first;  // the column of tiles in which the block started this row of tiles
};

// The parameters of the epilogue.
struct RowLists {
    ListSize size;
    // T::BM lists for each block. 32-bit indices are enough: the lists of 10,000 blocks have fewer
    // than 2^32 keys.
    Key* lists;
    Pieces pieces;
    std::size_t m;
    std::size_t n;

    __device__ Key* list(unsigned row) const { return lists + (blockIdx.x * T::BM + row) * size.room; }
    __device__ std::size_t row_of_tiles(const course::Tile& tile) const {
        return tile.product * pieces.tiles.down + tile.row / T::BM;
    }
    __device__ bool is_last_of_row(const course::Tile& tile) const { return tile.col + T::BN >= n; }
};

__device__ inline void start_row(RowState& rows, unsigned row) {
    rows.listed[row] = 0;
    rows.bound[row] = std::numeric_limits<float>::quiet_NaN();
}

__device__ inline void start_rows(RowState& rows, const EqualShares& tiles) {
    for (unsigned row = threadIdx.x; row < T::BM; row += T::THREADS)
        start_row(rows, row);
    if (threadIdx.x == 0) rows.first = tiles.first() % tiles.across;
    __syncthreads();
}

constexpr unsigned kWarps = T::THREADS / course::kWarpSize;
// Keys that a lane of a warp holds in registers while it searches a threshold. The registers are
// free then, because the sums of the tile are in the lists or dropped.
constexpr unsigned kKeysOfLane = 20;

// The block has no more tiles in this row of tiles, so a warp stores the best keys of a list as a
// piece. Then the list is empty for another row of tiles.
__device__ inline void write_piece(const RowLists& lists, RowState& rows, const course::Tile& tile,
                                   unsigned row) {
    const unsigned lane = threadIdx.x % course::kWarpSize;
    Key* const list = lists.list(row);
    const Key up_to = Key{rank_of(rows.bound[row])} << 32 | 0xffffffff;  // of NaN: all
    const unsigned listed = copy_up_to(up_to, list, rows.listed[row], list);
    const Key bound = listed > lists.pieces.size ? find_bound_in_registers<kKeysOfLane>(
                                                       list, listed, lists.size.k, lists.pieces.size)
                                                 : kNoKey;
    Key* const piece = lists.pieces.keys_of(lists.row_of_tiles(tile), blockIdx.x, row);
    for (unsigned i = copy_up_to(bound, list, listed, piece) + lane; i < lists.pieces.size;
         i += course::kWarpSize)
        piece[i] = kNoKey;
    if (lane == 0) start_row(rows, row);
}

__device__ inline void write_pieces(const RowLists& lists, RowState& rows, const course::Tile& tile) {
    for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps) {
        if (tile.row + row >= lists.m) break;
        write_piece(lists, rows, tile, row);
    }
    if (threadIdx.x == 0) rows.first = 0;
}

// The keys of a row in its pieces, for select_best.
struct RowsOfPieces {
    Pieces pieces;
    std::size_t m;

    struct Row {
        const Key* first;  // key of the first piece
        unsigned size;
        std::size_t count;
        __device__ Key operator[](std::size_t i) const { return first[i / size * T::BM * size + i % size]; }
    };
    __device__ Row operator[](std::size_t row) const {
        const std::size_t row_of_tiles = row / m * pieces.tiles.down + row % m / T::BM;
        const auto in_tile = static_cast<unsigned>(row % m % T::BM);
        return {pieces.keys_of(row_of_tiles, pieces.first_block(row_of_tiles), in_tile), pieces.size,
                std::size_t{pieces.blocks(row_of_tiles)} * pieces.size};
    }
};

}  // namespace day48
