// Day 13, beyond: one query against many sequences, such as those of a database of proteins. Pairs
// are independent, so no strip waits for another warp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "alignments.hpp"
#include "common/device/grid.hpp"
#include "strips.cuh"

namespace day13 {

constexpr int kSearchBlock = 128;

// Of the `kLanes` lanes of a group: the value of one of them.
template <int kLanes>
__device__ int shuffle_in_group(int value, int lane) {
    return __shfl_sync(kWholeWarp, value, lane, kLanes);
}

// Idea: a group of kLanes lanes aligns the query with one sequence, in strips of kLanes x kEach rows
// as in sweep_strips, one strip after the other. A warp draws the next sequences as a ticket, the
// longest first, so that groups of a warp get similar lengths, and the last warps short ones.
// `pair_warps` has groups of 32 lanes with 4 rows each, `pair_groups` 8 lanes with 16 rows.
// Cost removed: waiting for other strips. With fewer lanes, also the steps in which the first and
// the last lanes have no cell, and three of four shuffles per cell.
// Still limits it: not measured yet.
//
// database.row has one word for each symbol: the last row of the strip before.
template <int kLanes, int kEach>
__global__ void __launch_bounds__(kSearchBlock)
    search(LocalRule rule, const Symbol* query, int m, DatabaseView database, int* scores) {
    constexpr int kGroups = kWarpSize / kLanes;  // of a warp
    constexpr int kStrip = kLanes * kEach;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    const int group = static_cast<int>(threadIdx.x) % kWarpSize / kLanes;

    while (true) {
        const bool draws = threadIdx.x % kWarpSize == 0;
        const int place = shuffle(draws ? atomicAdd(database.ticket, kGroups) : 0, 0);
        if (place >= database.count) return;
        const bool exists = place + group < database.count;
        const int of = exists ? database.order[place + group] : 0;
        const std::int64_t begin = database.begins[of];
        const Symbol* const b = database.symbols + begin;
        int* const row = database.row + begin;
        const int n = exists ? static_cast<int>(database.begins[of + 1] - begin) : 0;
        const int longest = shuffle(n, 0);  // of the warp: groups are in order of their lengths
        int most = 0;

        for (int top = 0; top < m; top += kStrip) {
            const int i0 = top + lane * kEach;
            const bool is_last = top + kStrip >= m;
            int of_a[kEach];
            int left[kEach];
#pragma unroll
            for (int r = 0; r < kEach; ++r) {
                of_a[r] = i0 + r < m ? query[i0 + r] : LocalRule::nothing();
                left[r] = 0;
            }
            int above_left = 0;
            int bottom = 0;
            int of_b = LocalRule::nothing();
            for (int start = 0; start < longest + kLanes - 1; start += kLanes) {
                int above = 0;
                int next = LocalRule::nothing();
                if (start + lane < n) {
                    if (top > 0) above = row[start + lane];
                    next = b[start + lane];
                }
                for (int k = 0; k < kLanes; ++k) {
                    const int from = lane == 0 ? k : lane - 1;
                    const int above_now = shuffle_in_group<kLanes>(above, k);
                    const int next_now = shuffle_in_group<kLanes>(next, k);
                    int up = shuffle_in_group<kLanes>(bottom, from);
                    of_b = shuffle_in_group<kLanes>(of_b, from);
                    if (lane == 0) {
                        up = above_now;
                        of_b = next_now;
                    }
                    const int j = start + k - lane;
                    if (j < 0 || j >= n) continue;
                    int diagonal = above_left;
                    above_left = up;
#pragma unroll
                    for (int r = 0; r < kEach; ++r) {
                        up = rule.cell(up, left[r], diagonal, of_a[r], of_b);
                        diagonal = left[r];
                        left[r] = up;
                        most = max(most, up);
                    }
                    bottom = up;
                    if (lane == kLanes - 1 && !is_last) row[j] = bottom;
                }
            }
            __syncwarp();  // the row is complete
        }
        for (int distance = kLanes / 2; distance > 0; distance /= 2)
            most = max(most, __shfl_xor_sync(kWholeWarp, most, distance));
        if (exists && lane == 0) scores[of] = most;
    }
}

// m > 0 and at least one sequence. As many warps as can be resident, or fewer for few sequences.
template <int kLanes, int kEach>
void launch_search(const LocalRule& rule, const Symbol* query, int m, const DatabaseView& database,
                   int* scores, cudaStream_t stream) {
    const auto kernel = search<kLanes, kEach>;
    const unsigned most = course::resident_blocks(kernel, kSearchBlock);
    const unsigned needed = course::blocks_for(std::size_t(database.count) * kLanes, kSearchBlock);
    cudaMemsetAsync(database.ticket, 0, sizeof(int), stream);
    search<kLanes, kEach> < <<needed<most ? needed : most, kSearchBlock, 0, stream>>>(rule, query, m,
                                                                                      database, scores);
}

}  // namespace day13
