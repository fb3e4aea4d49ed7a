// Day 48: the k best elements of each row of a matrix product, which is never written: nearest
// neighbours, for example. PMPP chapters 6 and 10 (4th and 5th edition).
//
//   version           what is new                               what limits it
//   k_minima          all distances; k minima of each row       a row is read k times
//   unfused           all distances; selection in one pass      8 bytes of traffic for each element
//   fused_own_bounds  the epilogue lists what may be among the  each block starts without a threshold,
//                     best; distances are not written           and lists many elements
//   fused             blocks publish thresholds                 multiply-adds
//
// The k best of the first n columns of a row are k of n. In random order, each later element is
// better than the worst of these k with probability k / n, so a list of candidates soon grows
// slowly. Of 62,500 columns with k = 128 about 920 would become candidates with an exact threshold,
// and about 1,600 do: the threshold is lowered only when a list is full. Sorted data can make every
// element a candidate. The result is still right, only later.
//
//   ./course run day48 --only fused --size 1024x1000000x64x128
//   ./course inspect day48 --only fused --size 512x512x64
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "common/tile/distance.cuh"
#include "common/tile/main_loop.cuh"
#include "common/tile/tile_order.cuh"
#include "top_k.hpp"

namespace day48 {

// --- Keys: value and column in one integer ----------------------------------------------------------
//
// The lower, the better. No two keys of a row are equal, so the order is exact, and ties go to the
// lowest column. For the largest values, `sign` = -1 makes them the smallest.

using Key = std::uint64_t;
constexpr Key kNoKey = ~Key{0};  // behind all other keys; its column does not exist

// An integer that ascends with the value, NaN last. -0 and 0 have the same rank.
__device__ inline unsigned rank_of(float value) {
    const unsigned bits = __float_as_uint(value + 0.0f);  // -0 becomes 0
    // The bits of positive floats ascend with the value: flip the sign. Those of negative ones
    // descend: flip all.
    const unsigned ascending = bits ^ (static_cast<unsigned>(static_cast<int>(bits) >> 31) | 0x80000000);
    return isnan(value) ? 0xffffffff : ascending;
}

// NaN for rank 0, and for all ranks behind that of infinity.
__device__ inline float value_of_rank(unsigned rank) {
    return __uint_as_float(rank >> 31 == 1 ? rank & 0x7fffffff : ~rank);
}

__device__ inline Key key_of(float value, unsigned col) {
    return Key{rank_of(value)} << 32 | col;
}

__device__ inline unsigned rank_of(Key key) {
    return static_cast<unsigned>(key >> 32);
}

__device__ inline float value_of(Key key) {
    return value_of_rank(rank_of(key));
}

__device__ inline unsigned col_of(Key key) {
    return static_cast<unsigned>(key);
}

// --- Select from a matrix of distances --------------------------------------------------------------

constexpr int kSelectThreads = 256;

// The keys of a row that a kernel of common/tile has written.
struct RowsOfDistances {
    const float* distances;
    std::size_t cols;
    float sign;

    struct Row {
        const float* distances;
        float sign;
        std::size_t count;
        __device__ Key operator[](std::size_t i) const {
            return key_of(sign * distances[i], static_cast<unsigned>(i));
        }
    };
    __device__ Row operator[](std::size_t row) const { return {distances + row * cols, sign, cols}; }
};

// Idea: a block for each row, which another kernel has written. The first key of the result is the
// least one, each of the others the least one greater than the key before it.
// Cost removed: none. This is a minimum (day 15), k times.
// Still limits it: memory. The row is read k times.
__global__ __launch_bounds__(kSelectThreads) void select_k_minima(const RowsOfDistances rows, unsigned k,
                                                                  float sign, float* values,
                                                                  std::uint32_t* indices) {
    constexpr int WARPS = kSelectThreads / course::kWarpSize;
    __shared__ Key of_warp[WARPS];
    const RowsOfDistances::Row row = rows[blockIdx.x];
    const auto smaller = [](Key a, Key b) { return min(a, b); };
    Key found = 0;  // less than all keys
    for (unsigned i = 0; i < k; ++i) {
        Key least = kNoKey;
        for (std::size_t col = threadIdx.x; col < row.count; col += kSelectThreads) {
            const Key key = row[col];
            if (key > found) least = min(least, key);
        }
        least = course::warp_reduce(least, smaller);
        if (threadIdx.x % course::kWarpSize == 0) of_warp[threadIdx.x / course::kWarpSize] = least;
        __syncthreads();
        found = of_warp[0];
        for (int warp = 1; warp < WARPS; ++warp)
            found = min(found, of_warp[warp]);
        if (threadIdx.x == 0) {
            values[std::size_t{blockIdx.x} * k + i] = sign * value_of(found) + 0.0f;  // no -0
            indices[std::size_t{blockIdx.x} * k + i] = col_of(found);
        }
        __syncthreads();  // all reads are done before the next pass overwrites of_warp
    }
}

// --- A threshold: how a warp shortens a list of different keys in any order -------------------------

// A threshold: between `least` and `most` keys are less than or equal to it, of more than `most`.
// Any such number is right, so the search halves an interval and counts, until the count is in that
// range. `each` calls a function with each of the lane's keys.
template <class Each>
__device__ Key find_bound(const Each& each, unsigned least, unsigned most) {
    Key first = kNoKey;
    Key last = 0;
    each([&](Key key) {
        first = min(first, key);
        last = max(last, key);
    });
    // Always: fewer than `least` keys are up to `low`, more than `most` are up to `high`.
    Key low = course::warp_reduce(first, [](Key a, Key b) { return min(a, b); }) - 1;
    Key high = course::warp_reduce(last, [](Key a, Key b) { return max(a, b); });
    for (;;) {
        const Key middle = low + (high - low) / 2;
        unsigned up_to = 0;
        each([&](Key key) { up_to += key <= middle ? 1 : 0; });
        up_to = course::warp_reduce(up_to, [](unsigned a, unsigned b) { return a + b; });
        if (up_to < least) {
            low = middle;
        } else if (up_to > most) {
            high = middle;
        } else {
            return middle;
        }
    }
}

// The same for a list of `count` keys in memory.
__device__ inline Key find_bound(const Key* list, unsigned count, unsigned least, unsigned most) {
    return find_bound(
        [&](auto work) {
#pragma unroll 4
            for (unsigned i = threadIdx.x % course::kWarpSize; i < count; i += course::kWarpSize)
                work(list[i]);
        },
        least, most);
}

// The same; a list of at most MOST_OF_LANE keys per lane is loaded once, into registers.
template <unsigned MOST_OF_LANE>
__device__ Key find_bound_in_registers(const Key* list, unsigned count, unsigned least, unsigned most) {
    if (count > MOST_OF_LANE * course::kWarpSize) return find_bound(list, count, least, most);
    Key keys[MOST_OF_LANE];
#pragma unroll
    for (unsigned j = 0; j < MOST_OF_LANE; ++j) {
        const unsigned i = j * course::kWarpSize + threadIdx.x % course::kWarpSize;
        keys[j] = i < count ? list[i] : kNoKey;
    }
    return find_bound(
        [&](auto work) {
#pragma unroll
            for (const Key key : keys) {
                if (key != kNoKey) work(key);
            }
        },
        least, most);
}

// Copies the keys up to `bound` and returns their number. `to` may be the list itself.
__device__ inline unsigned copy_up_to(Key bound, const Key* list, unsigned count, Key* to) {
    constexpr unsigned AT_ONCE = 4;
    const unsigned lane = threadIdx.x % course::kWarpSize;
    unsigned copied = 0;
    for (unsigned begin = 0; begin < count; begin += AT_ONCE * course::kWarpSize) {
        Key keys[AT_ONCE];
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; ++j) {
            const unsigned i = begin + j * course::kWarpSize + lane;
            keys[j] = i < count ? list[i] : kNoKey;
        }
        __syncwarp();  // all lanes have loaded the keys that are overwritten now
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; ++j) {
            const bool is_copied = keys[j] <= bound && keys[j] != kNoKey;
            const unsigned copying = __ballot_sync(course::kWholeWarp, is_copied);
            if (is_copied) to[copied + __popc(copying & ((1u << lane) - 1))] = keys[j];
            copied += __popc(copying);
        }
    }
    __syncwarp();  // all lanes see the copies
    return copied;
}

// A bitonic sort of `count` keys, a power of two, by all threads of the block. Each pass over
// `width` merges pairs of sequences, one ascending, one descending, into sequences of `width`.
__device__ inline void sort(Key* keys, unsigned count) {
    for (unsigned width = 2; width <= count; width *= 2) {
        for (unsigned distance = width / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < count / 2; i += kSelectThreads) {
                const unsigned a = i / distance * distance * 2 + i % distance;
                const unsigned b = a + distance;
                if ((keys[a] > keys[b]) == ((a & width) == 0)) {
                    const Key key = keys[a];
                    keys[a] = keys[b];
                    keys[b] = key;
                }
            }
        }
    }
    __syncthreads();
}

// Idea: a block for each row lists keys below a threshold in shared memory. When the list is full,
// one warp lowers the threshold and drops the rest. At the end about k keys are left, and they are
// sorted.
// Cost removed: k - 1 of k passes over the row.
// Still limits it: memory. All distances were written, and are read here. If rows are short, the
// one warp that shortens the list.
//
// Rows: RowsOfDistances, or RowsOfPieces below.
template <class Rows>
__global__ __launch_bounds__(kSelectThreads) void select_best(const __grid_constant__ Rows rows, unsigned k,
                                                              float sign, float* values,
                                                              std::uint32_t* indices) {
    constexpr unsigned EACH = 4;                      // keys of a thread in one step
    constexpr unsigned STEP = EACH * kSelectThreads;  // keys of the block in one step
    constexpr unsigned ROOM = 2 * kMostBest + 2 * STEP;
    static_assert(kMostBest + kMostBest / 8 <= ROOM - STEP, "select_best: a shortened list is not full");
    __shared__ Key list[ROOM];
    __shared__ unsigned listed;
    __shared__ Key bound;
    const bool is_first_warp = threadIdx.x < course::kWarpSize;
    const auto row = rows[blockIdx.x];
    if (threadIdx.x == 0) {
        listed = 0;
        bound = kNoKey;
    }
    __syncthreads();
    for (std::size_t begin = 0; begin < row.count; begin += STEP) {
        bool is_full = false;
#pragma unroll
        for (unsigned j = 0; j < EACH; ++j) {
            const std::size_t i = begin + j * kSelectThreads + threadIdx.x;
            const Key key = i < row.count ? row[i] : kNoKey;
            if (key >= bound) continue;
            const unsigned place = atomicAdd(&listed, 1u);
            list[place] = key;
            is_full |= place >= ROOM - STEP;
        }
        if (!__syncthreads_or(is_full)) continue;
        if (is_first_warp) {
            const unsigned count = listed;
            const Key better = find_bound(list, count, k, k + k / 8);
            const unsigned kept = copy_up_to(better, list, count, list);
            if (threadIdx.x == 0) {
                listed = kept;
                bound = better;
            }
        }
        __syncthreads();
    }
    unsigned sorted = 1;
    while (sorted < k)
        sorted *= 2;
    if (is_first_warp) {
        const unsigned count = listed;
        unsigned kept = count;
        if (count > k) kept = copy_up_to(find_bound(list, count, k, k), list, count, list);
        for (unsigned i = kept + threadIdx.x; i < sorted; i += course::kWarpSize)
            list[i] = kNoKey;
    }
    sort(list, sorted);
    for (unsigned i = threadIdx.x; i < k; i += kSelectThreads) {
        values[std::size_t{blockIdx.x} * k + i] = sign * value_of(list[i]) + 0.0f;  // no -0
        indices[std::size_t{blockIdx.x} * k + i] = col_of(list[i]);
    }
}

// --- Selection in the epilogue ----------------------------------------------------------------------

// 128 x 256 results of a block, 16 x 8 of a thread.
using T = course::LargeTile;

// All tiles of all products, row of tiles after row of tiles, in equal shares. The tiles of a block
// follow each other: in one row of tiles, or from the end of one to the begin of another.
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

// A block has a list of candidates for each row of its tile. The room of a list: what a shortened
// list keeps, a tile's columns before there is a threshold, k more until the list counts as full,
// and one tile's columns, since a list that is not full must take a whole tile.
struct ListSize {
    unsigned k;
    unsigned kept;  // by a shortened list: k and some more, so that the search ends sooner
    unsigned room;

    explicit ListSize(std::size_t best)
        : k(static_cast<unsigned>(best)), kept(k + k / 8), room(kept + T::BN + k + T::BN) {}

    __device__ bool is_full(unsigned listed) const { return listed > room - T::BN; }
    __device__ bool is_worth_shortening(unsigned listed) const { return listed > (kept + room - T::BN) / 2; }
};

// What blocks leave in global memory: for each row of tiles, and for each block with tiles of it, a
// piece. Row of tiles r and block b ascend together, so r + b is a different number for each such
// pair.
struct Pieces {
    EqualShares tiles;
    unsigned size;
    // The best of the block's columns: `size` keys per row, or fewer and then kNoKey.
    Key* keys;
    // A published threshold per row, see publish_bounds(). All bits set: not published yet.
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
    __device__ volatile unsigned& rank_of(std::size_t row_of_tiles, unsigned block,
                                          unsigned row_in_tile) const {
        return ranks[(row_of_tiles + block) * T::BM + row_in_tile];
    }
};

// A block's state of the rows of its tile, in shared memory.
struct RowState {
    unsigned listed[T::BM];  // keys in the list of the row
    // The threshold. A value that is not less cannot be among the k best: k elements are less, or k
    // elements in lower columns are not greater. NaN until k elements are known: then no value is
    // dropped.
    float bound[T::BM];
    unsigned first;  // the column of tiles in which the block has begun this row of tiles
};

// The parameters of the epilogue.
struct RowLists {
    ListSize size;
    Key* lists;  // T::BM for each block; 2^32 keys are more than the lists of 10,000 blocks
    Pieces pieces;
    std::size_t m;
    std::size_t n;

    __device__ Key* list(unsigned row) const { return lists + (blockIdx.x * T::BM + row) * size.room; }
    __device__ std::size_t row_of_tiles(const course::Tile& tile) const {
        return tile.product * pieces.tiles.down + tile.row / T::BM;
    }
    __device__ bool is_last_of_row(const course::Tile& tile) const { return tile.col + T::BN >= n; }
};

constexpr unsigned kWarps = T::THREADS / course::kWarpSize;
constexpr unsigned kKeysOfLane = 20;  // in registers, when the sums are not needed any more

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

// Sums become values of which the smallest are the best.
__device__ inline void finish_values(const course::Distance& distance, float sign,
                                     const course::ThreadTileCoords<T>& at, float (&sums)[T::TM][T::TN]) {
    distance.finish(at, sums);
    if (sign < 0) {
#pragma unroll
        for (int i = 0; i < T::TM; ++i) {
#pragma unroll
            for (int j = 0; j < T::TN; ++j)
                sums[i][j] = -sums[i][j];
        }
    }
}

// Appends those of this thread's values of one row that are better than `bound` to the list of the
// row. Bit j of `inside`: column at.col(j) is in range. Returns whether the list is full.
__device__ inline bool append_better(const RowLists& lists, RowState& rows, unsigned row,
                                     const course::ThreadTileCoords<T>& at, const float (&values)[T::TN],
                                     float bound, unsigned inside) {
    unsigned chosen = 0;
#pragma unroll
    for (int j = 0; j < T::TN; ++j)
        chosen |= (!(values[j] >= bound) ? 1u : 0u) << j;
    chosen &= inside;
    const unsigned count = __popc(chosen);
    const unsigned before = atomicAdd(&rows.listed[row], count);
    Key* place = lists.list(row) + before;
    for (; chosen != 0; chosen &= chosen - 1) {
        const int which = __ffs(static_cast<int>(chosen)) - 1;
        float value = values[0];
#pragma unroll
        for (int j = 1; j < T::TN; ++j)
            value = j == which ? values[j] : value;
        *place++ = key_of(value, static_cast<unsigned>(at.col(which)));
    }
    return lists.size.is_full(before + count);
}

// Appends this thread's values that are better than the thresholds of their rows. One comparison
// decides for a value; only a row with a better value goes further. Returns whether a list is full.
__device__ inline bool append_values(const RowLists& lists, RowState& rows,
                                     const course::ThreadTileCoords<T>& at,
                                     const float (&values)[T::TM][T::TN]) {
    const auto rows_inside = static_cast<unsigned>(min(lists.m - at.tile.row, std::size_t{T::BM}));
    const auto cols_inside = static_cast<unsigned>(min(lists.n - at.tile.col, std::size_t{T::BN}));
    unsigned inside = 0;
#pragma unroll
    for (int j = 0; j < T::TN; ++j) {
        const auto col = static_cast<unsigned>(at.place.col + course::place_of<T::LANES_N>(0, j));
        inside |= (col < cols_inside ? 1u : 0u) << j;
    }
    bool is_full = false;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
        const unsigned row = at.place.row + course::place_of<T::LANES_M>(0, i);
        const float bound = rows.bound[row];
        bool is_any = false;
#pragma unroll
        for (int j = 0; j < T::TN; ++j)
            is_any |= !(values[i][j] >= bound);
        if (is_any && row < rows_inside)
            is_full |= append_better(lists, rows, row, at, values[i], bound, inside);
    }
    return is_full;
}

// Shortens the lists to their best and lowers the thresholds. When one list is full, others nearly
// are: all that are worth it are shortened together, a warp for each.
__device__ inline void shorten_lists(const RowLists& lists, RowState& rows) {
    for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps) {
        const unsigned listed = rows.listed[row];
        if (!lists.size.is_worth_shortening(listed)) continue;
        Key* const list = lists.list(row);
        const Key bound = find_bound_in_registers<kKeysOfLane>(list, listed, lists.size.k, lists.size.kept);
        const unsigned kept = copy_up_to(bound, list, listed, list);
        if (threadIdx.x % course::kWarpSize == 0) {
            rows.listed[row] = kept;
            rows.bound[row] = fminf(rows.bound[row], value_of(bound));  // of NaN and a number: the number
        }
    }
}

// The block has no more tiles in this row of tiles: the best keys of each list become its piece.
// Then the lists are empty for another row of tiles.
__device__ inline void write_pieces(const RowLists& lists, RowState& rows, const course::Tile& tile) {
    const unsigned lane = threadIdx.x % course::kWarpSize;
    for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps) {
        if (tile.row + row >= lists.m) break;
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
    if (threadIdx.x == 0) rows.first = 0;
}

// Idea: the epilogue compares each value with the threshold of its row, in registers. The few
// better ones go to the end of a list in memory; a full list is shortened, which lowers the
// threshold. A last kernel, select_best, selects from the pieces of all blocks.
// Cost removed: writing and reading all distances, 8 bytes for each.
// Still limits it: with 16 blocks per row, each starts without a threshold, and keeps its own k
// best.
//
// Add: multiply-add, or the squared difference of two factors (common/tile/distance.cuh).
template <class LoaderA, class LoaderB, class Add>
__global__ __launch_bounds__(T::THREADS,
                             1) void list_best_of_block(const __grid_constant__ course::Factors factors,
                                                        const Add add,
                                                        const __grid_constant__ course::Distance distance,
                                                        const float sign,
                                                        const __grid_constant__ RowLists lists) {
    extern __shared__ float4 shared[];
    __shared__ RowState rows;
    const EqualShares& tiles = lists.pieces.tiles;
    start_rows(rows, tiles);
    const auto epilogue = [&](const course::Tile& tile, float(&sums)[T::TM][T::TN]) {
        const course::ThreadTileCoords<T> at{tile};
        finish_values(distance, sign, at, sums);
        const bool is_full = __syncthreads_or(append_values(lists, rows, at, sums));
        // The main loop's barriers are between this and the next tile.
        if (lists.is_last_of_row(tile)) {
            write_pieces(lists, rows, tile);
        } else if (is_full) {
            shorten_lists(lists, rows);
        }
    };
    course::multiply_tiles<T, LoaderA, LoaderB>(factors, tiles, reinterpret_cast<course::Stage<T>*>(shared),
                                                add, epilogue);
    const course::Tile last = tiles.at(tiles.last());
    __syncthreads();  // the lists of the last tile may have been shortened
    if (!lists.is_last_of_row(last)) write_pieces(lists, rows, last);
}

// --- Thresholds shared by blocks --------------------------------------------------------------------

// Publishes a threshold for each row, a warp for each: `share` = k / blocks, rounded up, of this
// block's elements are not greater. If all blocks of the row have published, k elements are not
// greater than the greatest of their thresholds. Stores and loads are volatile and unordered,
// without a barrier: a reader that comes too early gets an older
// number, which is still true.
__device__ inline void publish_bounds(const RowLists& lists, const RowState& rows, const course::Tile& tile) {
    const std::size_t of_tiles = lists.row_of_tiles(tile);
    const unsigned share = course::ceil_div(lists.size.k, lists.pieces.blocks(of_tiles));
    const unsigned most = share + share / 8;
    for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps) {
        const unsigned listed = rows.listed[row];
        if (listed <= most) continue;
        const Key bound = find_bound_in_registers<kKeysOfLane>(lists.list(row), listed, share, most);
        if (threadIdx.x % course::kWarpSize == 0)
            lists.pieces.rank_of(of_tiles, blockIdx.x, row) = rank_of(bound);
    }
}

// Reads the thresholds of all blocks that share the row of tiles, a thread for each row.
__device__ inline void read_bounds(const RowLists& lists, RowState& rows, const course::Tile& tile) {
    static_assert(T::THREADS >= T::BM, "read_bounds: a thread for each row");
    const unsigned row = threadIdx.x;
    if (row >= T::BM) return;
    const std::size_t of_tiles = lists.row_of_tiles(tile);
    const unsigned first = lists.pieces.first_block(of_tiles);
    const unsigned blocks = lists.pieces.blocks(of_tiles);
    unsigned greatest = 0;
#pragma unroll 8
    for (unsigned block = 0; block < blocks; ++block)
        greatest = max(greatest, unsigned{lists.pieces.rank_of(of_tiles, first + block, row)});
    // An equal element may be in a lower column than all of those: the bound is the next greater
    // number.
    rows.bound[row] = fminf(rows.bound[row], value_of_rank(greatest + 1));
}

// After one tile of a row, two, four ...: while the number of tiles doubles, about k elements are
// found that are better than what was the k-th best.
__device__ inline bool is_time_for_bounds(unsigned tiles) {
    return tiles != 0 && (tiles & (tiles - 1)) == 0;
}

// Idea: blocks that share a row publish thresholds while they work, and read those of the others.
// Cost removed: candidates. With 16 blocks per row and k = 128, a block need find only 8 elements
// of its own, as good as the k-th best of all, before it drops the rest.
// Still limits it: multiply-adds. Of 4.8 ms on an H200 (1024 x 1,000,000 x 64, k = 128), a mere
// minimum of the same distances takes 3.4.
template <class LoaderA, class LoaderB, class Add>
__global__ __launch_bounds__(T::THREADS,
                             1) void list_best(const __grid_constant__ course::Factors factors, const Add add,
                                               const __grid_constant__ course::Distance distance,
                                               const float sign, const __grid_constant__ RowLists lists) {
    extern __shared__ float4 shared[];
    __shared__ RowState rows;
    const EqualShares& tiles = lists.pieces.tiles;
    start_rows(rows, tiles);
    const auto finish_row = [&](const course::Tile& tile) {
        publish_bounds(lists, rows, tile);
        __syncthreads();
        read_bounds(lists, rows, tile);
        __syncthreads();
        write_pieces(lists, rows, tile);
    };
    const auto epilogue = [&](const course::Tile& tile, float(&sums)[T::TM][T::TN]) {
        const course::ThreadTileCoords<T> at{tile};
        // Tiles of this row that the block has finished.
        const unsigned before = static_cast<unsigned>(tile.col / T::BN) - rows.first;
        if (is_time_for_bounds(before)) {
            read_bounds(lists, rows, tile);
            __syncthreads();
        }
        finish_values(distance, sign, at, sums);
        const bool is_full = __syncthreads_or(append_values(lists, rows, at, sums));
        // The main loop's barriers are between this and the next tile.
        if (lists.is_last_of_row(tile)) {
            finish_row(tile);
        } else if (is_full) {
            shorten_lists(lists, rows);
        } else if (is_time_for_bounds(before + 1)) {
            publish_bounds(lists, rows, tile);
        }
    };
    course::multiply_tiles<T, LoaderA, LoaderB>(factors, tiles, reinterpret_cast<course::Stage<T>*>(shared),
                                                add, epilogue);
    const course::Tile last = tiles.at(tiles.last());
    __syncthreads();  // the lists of the last tile may have been shortened
    if (!lists.is_last_of_row(last)) finish_row(last);
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
