// The elements that a thread of bulk_filter (bulk_filter.cuh) owns in a tile: reading, counting,
// staging and storing them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/device/pack.cuh"
#include "common/device/warp.cuh"

namespace day17 {

using course::kWarpSize;
using course::kWholeWarp;

// A warp owns consecutive elements: kRows rows of 32 packs, lane l the l-th pack of each row.
constexpr int kBulkThreads = 512;
constexpr int kBulkWarps = kBulkThreads / kWarpSize;
constexpr int kRows = 4;
constexpr int kRow = 4 * kWarpSize;              // elements of a row
constexpr int kOfWarp = kRows * kRow;            // elements of a warp
constexpr int kBulkTile = kBulkWarps * kOfWarp;  // 8,192 elements, 32 KB

using Four = course::Pack<std::int32_t, 4>;

// The elements of a thread: a pack in each row of its warp.
struct Owned {
    Four packs[kRows];
    std::int32_t left[kRows];  // the left neighbour of each pack

    __device__ std::int32_t left_of(int row, int k) const {
        return k == 0 ? left[row] : packs[row].value[k - 1];
    }
};

// Where a thread's first pack is in a tile.
__device__ inline int first_of_packs() {
    return static_cast<int>(threadIdx.x) / kWarpSize * kOfWarp +
           static_cast<int>(threadIdx.x) % kWarpSize * 4;
}

// Reads this thread's packs from shared memory, or from global memory if the tile is the last one
// and shorter.
template <class Keep>
__device__ void read_packs(const std::int32_t* tile, const std::int32_t* in, std::size_t n, std::size_t first,
                           Four (&packs)[kRows]) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        const int i = first_of_packs() + row * kRow;
        if (first + kBulkTile <= n) {
            packs[row] = Four::load(tile + i);
            continue;
        }
#pragma unroll
        for (int k = 0; k < 4; ++k)
            packs[row].value[k] = first + i + k < n ? in[first + i + k] : Keep::behind(in, n);
    }
}

// The left neighbour of a pack is the last element of the lane to the left, and for lane 0 that of
// the last lane in the row before. For the warp's first row it is an element of another warp.
// Element 0 has none, so any different value is used.
__device__ inline void find_left(const std::int32_t* tile, const std::int32_t* in, std::size_t n,
                                 std::size_t first, Owned& owned) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    std::int32_t before_row = 0;
    if (lane == 0) {
        const int i = first_of_packs();
        if (first + i == 0) {
            before_row = ~owned.packs[0].value[0];
        } else if (first + kBulkTile <= n) {
            before_row = tile[i - 1];
        } else {
            before_row = in[first + i - 1 < n ? first + i - 1 : n - 1];
        }
    }
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        const std::int32_t last = owned.packs[row].value[3];
        const std::int32_t of_left_lane = __shfl_sync(kWholeWarp, last, (lane + kWarpSize - 1) % kWarpSize);
        owned.left[row] = lane == 0 ? before_row : of_left_lane;
        before_row = of_left_lane;
    }
}

// How many elements each pack of a thread keeps: a byte for each row. A warp keeps at most 128 of a
// row, so the bytes of its lanes can be added up all at once.
template <class Keep>
__device__ unsigned count_by_row(const Owned& owned, Keep keep) {
    unsigned counts = 0;
#pragma unroll
    for (int row = 0; row < kRows; ++row)
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (keep(owned.packs[row].value[k], owned.left_of(row, k))) counts += 1U << 8 * row;
    return counts;
}

__device__ inline unsigned count_of_row(unsigned counts, int row) {
    return counts >> 8 * row & 0xff;
}

// Writes what the warp keeps to staged[place] and up, in order: by rows, then by lanes, then as in
// the pack. `mine`: what count_by_row() found.
template <class Keep>
__device__ void stage_owned(const Owned& owned, Keep keep, unsigned mine, unsigned place,
                            std::int32_t* staged) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    unsigned inclusive = mine;  // of all four rows
    for (int stride = 1; stride < kWarpSize; stride *= 2) {
        const unsigned left = __shfl_up_sync(kWholeWarp, inclusive, stride);
        if (lane >= stride) inclusive += left;
    }
    const unsigned of_warp = __shfl_sync(kWholeWarp, inclusive, kWarpSize - 1);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        unsigned mine_begins = place + count_of_row(inclusive - mine, row);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const std::int32_t value = owned.packs[row].value[k];
            if (keep(value, owned.left_of(row, k))) staged[mine_begins++] = value;
        }
        place += count_of_row(of_warp, row);
    }
}

// The warp copies staged[i] to line[i] for `begin` <= i < `end`, 16 bytes at a time where all four
// elements are in that range. The results are not needed again soon, so __stcs leaves the L2 cache
// to the input.
__device__ inline void store_line(const std::int32_t* staged, unsigned begin, unsigned end,
                                  std::int32_t* line) {
    for (unsigned first = threadIdx.x % kWarpSize * 4; first < end; first += kRow) {
        if (begin <= first && first + 4 <= end) {
            __stcs(reinterpret_cast<uint4*>(line + first), *reinterpret_cast<const uint4*>(staged + first));
        } else {
            for (unsigned i = first; i < first + 4; ++i)
                if (begin <= i && i < end) __stcs(line + i, staged[i]);
        }
    }
}

}  // namespace day17
