// Day 48, beyond: selection in the epilogue of the product.
//
//   version           what is new                               what limits it
//   fused_own_bounds  the epilogue lists what may be among the  each block starts without a threshold,
//                     best; distances are not written           and lists many elements
//   fused             blocks publish thresholds                 instructions; with few points, the
//                                                               lists
//
// The third version, fused_wgmma, is in fused_wgmma.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/operands.hpp"
#include "common/device/relaxed.cuh"
#include "common/device/warp.cuh"
#include "common/tile/distance.cuh"
#include "common/tile/loader.cuh"
#include "common/tile/main_loop.cuh"
#include "keys.cuh"
#include "row_lists.cuh"
#include "thresholds.cuh"

namespace day48 {

using course::load_relaxed;
using course::store_relaxed;

// A block multiplies its tiles one after the other; most are in one row of tiles. For each of the
// 128 rows of its tile it keeps (row_lists.cuh):
//
//     lists.list(row) in global memory: the list of keys. lists.size: when it is full
//     rows.listed[row]   in shared memory: the number of keys in the list
//     rows.bound[row]    in shared memory: the threshold
//     lists.pieces the output of blocks in global memory: published thresholds, and for select_best
//                        a piece of each row, their best keys
//
// T is the tile, 128 x 256 results of a block, 16 x 8 of a thread. EqualShares deals the tiles to
// the blocks.

// Turns sums into values of which the smallest are the best.
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
        // values[which] would move the array from registers to local memory, because `which` is not
        // known at compile time. The loop over all j is unrolled, so its indices are.
        const int which = __ffs(static_cast<int>(chosen)) - 1;
        float value = values[0];
#pragma unroll
        for (int j = 1; j < T::TN; ++j)
            value = j == which ? values[j] : value;
        *place++ = key_of(value, static_cast<unsigned>(at.col(which)));
    }
    return lists.size.is_full(before + count);
}

// Appends this thread's values that are better than the thresholds of their rows. One comparison is
// enough for most values; only a row with a better value needs more work. Returns whether a list is
// full.
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

// A warp shortens the list of a row to its best and lowers the threshold, if that is worth it.
__device__ inline void shorten_list(const RowLists& lists, RowState& rows, unsigned row) {
    const unsigned listed = rows.listed[row];
    if (!lists.size.is_worth_shortening(listed)) return;
    Key* const list = lists.list(row);
    const Key bound = find_bound_in_registers<kKeysOfLane>(list, listed, lists.size.k, lists.size.kept);
    const unsigned kept = copy_up_to(bound, list, listed, list);
    if (threadIdx.x % course::kWarpSize == 0) {
        rows.listed[row] = kept;
        rows.bound[row] = fminf(rows.bound[row], value_of(bound));  // of NaN and a number: the number
    }
}

// When one list is full, others nearly are, so all for which it is worthwhile are shortened
// together.
__device__ inline void shorten_lists(const RowLists& lists, RowState& rows) {
    for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps)
        shorten_list(lists, rows, row);
}

// Idea: the epilogue compares each value with the threshold of its row, in registers. The few
// better ones are appended to a list in memory; a full list is shortened, which lowers the
// threshold. A last kernel, select_best, selects from the pieces of all blocks.
// Cost removed: writing and reading all distances, 8 bytes for each.
// Still limits it: with 16 blocks per row, each starts without a threshold, and keeps its own k
// best.
//
// Add: multiply-add, or the squared difference of two operands (common/tile/distance.cuh).
template <class LoaderA, class LoaderB, class Add>
__global__ void __launch_bounds__(T::THREADS, 1)
    list_best_of_block(const __grid_constant__ course::Operands operands, const Add add,
                       const __grid_constant__ course::Distance distance, const float sign,
                       const __grid_constant__ RowLists lists) {
    extern __shared__ float4 shared[];
    __shared__ RowState rows;
    const EqualShares& tiles = lists.pieces.tiles;
    start_rows(rows, tiles);
    const auto epilogue = [&](const course::Tile& tile, float(&sums)[T::TM][T::TN]) {
        const course::ThreadTileCoords<T> at{tile};
        finish_values(distance, sign, at, sums);
        const bool is_full = __syncthreads_or(append_values(lists, rows, at, sums));
        // Each warp now changes lists to which all threads append. The barriers of the main loop
        // come before the next append.
        if (lists.is_last_of_row(tile)) {
            write_pieces(lists, rows, tile);
        } else if (is_full) {
            shorten_lists(lists, rows);
        }
    };
    course::multiply_tiles<T, LoaderA, LoaderB>(operands, tiles, reinterpret_cast<course::Stage<T>*>(shared),
                                                add, epilogue);
    const course::Tile last = tiles.at(tiles.last());
    __syncthreads();  // the lists of the last tile may have been shortened
    if (!lists.is_last_of_row(last)) write_pieces(lists, rows, last);
}

using ElementsOfA = course::ElementLoader<T::BM, T::BK, T::THREADS>;
using ElementsOfB = course::ElementLoader<T::BN, T::BK, T::THREADS>;
using PacksOfB = course::PackLoader<T::BN, T::BK, T::THREADS>;

template <class Add>
void launch_list_best_of_block(const course::Operands& operands, const course::Distance& distance, float sign,
                               const RowLists& lists, cudaStream_t stream) {
    constexpr std::size_t kShared = sizeof(course::Stage<T>) * T::STAGES;
    const auto kernel = course::b_goes_in_packs(operands) ? list_best_of_block<ElementsOfA, PacksOfB, Add>
                                                          : list_best_of_block<ElementsOfA, ElementsOfB, Add>;
    course::launch(kernel, {lists.pieces.tiles.blocks, T::THREADS, kShared, stream}, operands, Add{},
                   distance, sign, lists);
}

// --- Thresholds shared by blocks -----------------------------------------------------------------

// A block publishes, for each row of a row of tiles, a threshold that at least k / blocks of its
// elements, rounded up, do not exceed. If all blocks of the row of tiles have published, at least k
// elements do not exceed the greatest of their thresholds.
struct Publication {
    std::size_t row_of_tiles;
    unsigned least;
    unsigned most;

    __device__ Publication(const RowLists& lists, const course::Tile& tile)
        : row_of_tiles(lists.row_of_tiles(tile)),
          least(course::ceil_div(lists.size.k, lists.pieces.blocks(row_of_tiles))),
          most(least + least / 8) {}
};

// A warp publishes the threshold of a row. Stores and loads are relaxed and unordered, without a
// barrier: a thread that reads too early gets an older threshold, which is still valid.
__device__ inline void publish_bound(const RowLists& lists, const RowState& rows, const Publication& of,
                                     unsigned row) {
    const unsigned listed = rows.listed[row];
    if (listed <= of.most) return;
    const Key bound = find_bound_in_registers<kKeysOfLane>(lists.list(row), listed, of.least, of.most);
    if (threadIdx.x % course::kWarpSize == 0)
        store_relaxed(&lists.pieces.published(of.row_of_tiles, blockIdx.x, row), rank_of(bound));
}

__device__ inline void publish_bounds(const RowLists& lists, const RowState& rows, const course::Tile& tile) {
    const Publication of(lists, tile);
    for (unsigned row = threadIdx.x / course::kWarpSize; row < T::BM; row += kWarps)
        publish_bound(lists, rows, of, row);
}

// A thread reads the thresholds of all blocks that share a row.
__device__ inline void read_bound(const RowLists& lists, RowState& rows, const course::Tile& tile,
                                  unsigned row) {
    const std::size_t of_tiles = lists.row_of_tiles(tile);
    const unsigned first = lists.pieces.first_block(of_tiles);
    const unsigned blocks = lists.pieces.blocks(of_tiles);
    unsigned greatest = 0;
#pragma unroll 8
    for (unsigned block = 0; block < blocks; ++block)
        greatest = max(greatest, load_relaxed(&lists.pieces.published(of_tiles, first + block, row)));
    // An equal element may be in a lower column than all of those, so the bound is the next greater
    // number.
    rows.bound[row] = fminf(rows.bound[row], value_of_rank(greatest + 1));
}

__device__ inline void read_bounds(const RowLists& lists, RowState& rows, const course::Tile& tile) {
    static_assert(T::THREADS >= T::BM, "read_bounds: a thread for each row");
    if (threadIdx.x < T::BM) read_bound(lists, rows, tile, threadIdx.x);
}

// After 1, 2, 4, 8, ... tiles of a row: each time their number doubles, about k new elements are
// better than the k-th best was.
__device__ inline bool is_time_for_bounds(unsigned tiles) {
    return tiles != 0 && (tiles & (tiles - 1)) == 0;
}

// Idea: blocks that share a row publish thresholds while they run, and read those of the others.
// Cost removed: candidates. With 16 blocks per row and k = 128, a block has to find only 8 elements
// of its own that are as good as the k-th best of all before it drops the rest.
// Still limits it: instructions (counters: issue slots 61 % busy, FMA 53 %), of multiply-adds and
// of lists; with few points, the lists. Of 4.8 ms on an H200 (1024 x 1,000,000 x 64, k = 128), a
// mere minimum of the same distances takes 3.4 ms.
template <class LoaderA, class LoaderB, class Add>
__global__ void __launch_bounds__(T::THREADS, 1)
    list_best(const __grid_constant__ course::Operands operands, const Add add,
              const __grid_constant__ course::Distance distance, const float sign,
              const __grid_constant__ RowLists lists) {
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
        // Each warp now changes lists to which all threads append. The barriers of the main loop
        // come before the next append.
        if (lists.is_last_of_row(tile)) {
            finish_row(tile);
        } else if (is_full) {
            shorten_lists(lists, rows);
        } else if (is_time_for_bounds(before + 1)) {
            publish_bounds(lists, rows, tile);
        }
    };
    course::multiply_tiles<T, LoaderA, LoaderB>(operands, tiles, reinterpret_cast<course::Stage<T>*>(shared),
                                                add, epilogue);
    const course::Tile last = tiles.at(tiles.last());
    __syncthreads();  // the lists of the last tile may have been shortened
    if (!lists.is_last_of_row(last)) finish_row(last);
}

template <class Add>
void launch_list_best(const course::Operands& operands, const course::Distance& distance, float sign,
                      const RowLists& lists, cudaStream_t stream) {
    constexpr std::size_t kShared = sizeof(course::Stage<T>) * T::STAGES;
    const auto kernel = course::b_goes_in_packs(operands) ? list_best<ElementsOfA, PacksOfB, Add>
                                                          : list_best<ElementsOfA, ElementsOfB, Add>;
    course::launch(kernel, {lists.pieces.tiles.blocks, T::THREADS, kShared, stream}, operands, Add{},
                   distance, sign, lists);
}

}  // namespace day48
