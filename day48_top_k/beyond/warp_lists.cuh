// Day 48, beyond: the epilogue of both versions on wgmma.
//
// A warp has whole rows of the tile, so no other warp of the block has candidates for its lists: it
// appends, shortens and publishes without a barrier of the block.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/warp.cuh"
#include "common/tile/distance.cuh"
#include "fused.cuh"
#include "row_lists.cuh"

namespace day48 {

constexpr int POINTS = 128;             // a tile of EqualShares is listed in halves of so many points
constexpr int HALVES = T::BN / POINTS;  // two
constexpr int OF_LANE = POINTS / 4;     // points of a lane, for two queries
constexpr unsigned kRowsOfWarp = 16;
static_assert(T::BN % POINTS == 0 && OF_LANE <= 32, "append_half: a bit for each point of a lane");

// Returns values[i]. Indexing by an `i` that is not known at compile time would move the array from
// registers to local memory. So the function selects a half, then a half of that, and so on.
template <int N>
__device__ float value_at(const float (&values)[N], int i) {
    if constexpr (N == 1) {
        return values[0];
    } else {
        float chosen[N / 2];
#pragma unroll
        for (int j = 0; j < N / 2; ++j)
            chosen[j] = (i & N / 2) != 0 ? values[j + N / 2] : values[j];
        return value_at(chosen, i);
    }
}

// Appends those of a lane's values that are better than the thresholds of their rows. Four lanes
// have values of the same two rows. Returns whether a list is full.
//
// At: value [h][i] is that of query row(h), which is row_in_tile(h), and of point col(i).
template <class At>
__device__ bool append_half(const RowLists& lists, RowState& rows, const At& at,
                            const float (&values)[2][OF_LANE], bool is_whole) {
    bool is_full = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const unsigned row = at.row_in_tile(h);
        const float bound = rows.bound[row];
        bool is_any = false;
#pragma unroll
        for (int i = 0; i < OF_LANE; ++i)
            is_any |= !(values[h][i] >= bound);
        if (!is_any || at.row(h) >= lists.m) continue;
        unsigned chosen = 0;
#pragma unroll
        for (int i = 0; i < OF_LANE; ++i)
            chosen |= (!(values[h][i] >= bound) && (is_whole || at.col(i) < lists.n) ? 1u : 0u) << i;
        const unsigned count = __popc(chosen);
        const unsigned before = atomicAdd(&rows.listed[row], count);
        Key* place = lists.list(row) + before;
#pragma unroll 1
        for (; chosen != 0; chosen &= chosen - 1) {
            const int i = __ffs(static_cast<int>(chosen)) - 1;
            *place++ = key_of(value_at(values[h], i), static_cast<unsigned>(at.col(i)));
        }
        is_full |= lists.size.is_full(before + count);
    }
    return is_full;
}

// The lists of a warp. row_of(i): the row in the tile, i from 0 to kRowsOfWarp - 1.
template <class RowOf>
struct WarpLists {
    const RowLists& lists;
    RowState& rows;
    RowOf row_of;

    // Reads the thresholds that blocks have published.
    __device__ void read(const course::Tile& tile) const {
        const unsigned i = threadIdx.x % course::kWarpSize;
        if (i < kRowsOfWarp) read_bound(lists, rows, tile, row_of(i));
        __syncwarp();
    }

    // Turns the sums of half a tile into values of which the smallest are the best, and appends.
    template <class At>
    __device__ bool append_half(const course::Distance& distance, float sign, const At& at,
                                float (&values)[2][OF_LANE]) const {
        const bool is_whole = at.tile.col + POINTS <= lists.n;
        is_whole ? distance.finish<true>(at, values) : distance.finish(at, values);
        if (sign < 0) {
#pragma unroll
            for (int j = 0; j < OF_LANE * 2; ++j)
                values[j % 2][j / 2] = -values[j % 2][j / 2];
        }
        return day48::append_half(lists, rows, at, values, is_whole);
    }

    // All values of a tile are listed. `before`: how many tiles of its row the block had finished.
    __device__ void end_tile(const course::Tile& tile, unsigned before, bool is_full, bool is_last) const {
        is_full = __any_sync(course::kWholeWarp, is_full);
        const bool ends = is_last || lists.is_last_of_row(tile);
        if (is_full && !ends) {
            each_row(tile, [&](unsigned row) { shorten_list(lists, rows, row); });
        } else if (ends || is_time_for_bounds(before + 1)) {
            const Publication of(lists, tile);
            each_row(tile, [&](unsigned row) { publish_bound(lists, rows, of, row); });
        }
        if (ends) {
            read(tile);
            each_row(tile, [&](unsigned row) { write_piece(lists, rows, tile, row); });
        }
    }

  private:
    template <class Work>
    __device__ void each_row(const course::Tile& tile, Work work) const {
        __syncwarp();
#pragma unroll 1
        for (unsigned i = 0; i < kRowsOfWarp; ++i) {
            const unsigned row = row_of(i);
            if (tile.row + row < lists.m) work(row);
        }
        __syncwarp();
    }
};

}  // namespace day48
