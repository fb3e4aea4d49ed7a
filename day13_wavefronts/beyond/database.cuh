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
template <int kLanes, class T>
__device__ T shuffle_in_group(T value, int lane) {
    return __shfl_sync(kWholeWarp, value, lane, kLanes);
}

// Idea: a group of kLanes lanes aligns the query with one sequence, in strips of kLanes x kEach
// rows as in sweep_strips, one strip after the other. A warp draws the next sequences as a ticket,
// the longest first, so that groups of a warp get similar lengths, and the last warps short ones.
// `pair_warps` has groups of 32 lanes with 4 rows each, `pair_groups` 8 lanes with 16 rows.
// Cost removed: waiting for other strips. With fewer lanes, also the steps in which the first and
// the last lanes have no cell, and three of four shuffles per cell.
// Still limits it: the ALUs, 84 % busy with groups of 32 lanes, 89 % with groups of 8.
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
    const unsigned most = course::resident_blocks(search<kLanes, kEach>, kSearchBlock);
    const unsigned needed = course::blocks_for(std::size_t(database.count) * kLanes, kSearchBlock);
    const unsigned grid = needed < most ? needed : most;
    cudaMemsetAsync(database.ticket, 0, sizeof(int), stream);
    search<kLanes, kEach><<<grid, kSearchBlock, 0, stream>>>(rule, query, m, database, scores);
}

// As LocalRule, for the scores of two pairs: 16 bits each of a word.
struct HalvesRule {
    unsigned match, mismatch, gap;  // the same in both halves
    // Without a comparison, which takes five instructions for two halves: min(a ^ b, 1) is 0 or 1
    // in each half, and 0xffff times that no bits or all. These take three on GPUs that have DPX.
    __device__ unsigned cell(unsigned up, unsigned left, unsigned diagonal, unsigned of_a,
                             unsigned of_b) const {
        const unsigned differ = __vminu2(of_a ^ of_b, 0x10001U) * 0xffffU;
        const unsigned paired =
            __viaddmax_s16x2(diagonal, (differ & (match ^ mismatch)) ^ match, 0);  // at least 0
        return __viaddmax_s16x2(up, gap, __viaddmax_s16x2(left, gap, paired));
    }
};

__host__ __device__ inline unsigned both_halves(int value) {
    return (unsigned(value) & 0xffffU) * 0x10001U;
}

// Idea: a lane computes two cells with each instruction, those of two sequences. A group of kLanes
// lanes has two sequences, one in the lower and one in the upper halves of its registers. The
// second is never the longer one: symbols that equal no other extend it.
// Cost removed: half of the additions, maxima and shuffles for each cell.
// Still limits it: the ALUs, 86 % busy. Scores must be less than 2^15.
template <int kLanes, int kEach>
__global__ void __launch_bounds__(kSearchBlock)
    search_halves(HalvesRule rule, const Symbol* query, int m, DatabaseView database, int* scores) {
    constexpr int kPairs = 2 * kWarpSize / kLanes;  // of a warp
    constexpr int kStrip = kLanes * kEach;
    constexpr unsigned kNoSymbol = 256;
    static_assert(kEach % 2 == 0);
    const unsigned no_row = both_halves(512);  // after the last row: equals no symbol, nor kNoSymbol
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    const int group = static_cast<int>(threadIdx.x) % kWarpSize / kLanes;

    while (true) {
        const bool draws = threadIdx.x % kWarpSize == 0;
        const int drawn = shuffle(draws ? atomicAdd(database.ticket, kPairs) : 0, 0);
        if (drawn >= database.count) return;
        const int place = drawn + 2 * group;
        const int pairs = place >= database.count ? 0 : place + 1 == database.count ? 1 : 2;
        const int first = pairs > 0 ? database.order[place] : 0;
        const int second = pairs > 1 ? database.order[place + 1] : 0;
        const Symbol* const b0 = database.symbols + database.begins[first];
        const Symbol* const b1 = database.symbols + database.begins[second];
        const int n = pairs > 0 ? static_cast<int>(database.begins[first + 1] - database.begins[first]) : 0;
        const int n1 =
            pairs > 1 ? static_cast<int>(database.begins[second + 1] - database.begins[second]) : 0;
        auto* const row = reinterpret_cast<unsigned*>(database.row + database.begins[first]);
        const int longest = shuffle(n, 0);
        unsigned most = 0;

        for (int top = 0; top < m; top += kStrip) {
            const int i0 = top + lane * kEach;
            const bool is_last = top + kStrip >= m;
            unsigned of_a[kEach];
            unsigned left[kEach];
#pragma unroll
            for (int r = 0; r < kEach; ++r) {
                of_a[r] = i0 + r < m ? both_halves(query[i0 + r]) : no_row;
                left[r] = 0;
            }
            unsigned above_left = 0;
            unsigned bottom = 0;
            unsigned of_b = 0;
            for (int start = 0; start < longest + kLanes - 1; start += kLanes) {
                unsigned above = 0;
                unsigned next = 0;
                if (start + lane < n) {
                    if (top > 0) above = row[start + lane];
                    next = b0[start + lane];
                    next |= (start + lane < n1 ? b1[start + lane] : kNoSymbol) << 16;
                }
                for (int k = 0; k < kLanes; ++k) {
                    const int from = lane == 0 ? k : lane - 1;
                    const unsigned above_now = shuffle_in_group<kLanes>(above, k);
                    const unsigned next_now = shuffle_in_group<kLanes>(next, k);
                    unsigned up = shuffle_in_group<kLanes>(bottom, from);
                    of_b = shuffle_in_group<kLanes>(of_b, from);
                    if (lane == 0) {
                        up = above_now;
                        of_b = next_now;
                    }
                    const int j = start + k - lane;
                    if (j < 0 || j >= n) continue;
                    unsigned diagonal = above_left;
                    above_left = up;
#pragma unroll
                    for (int r = 0; r < kEach; ++r) {
                        up = rule.cell(up, left[r], diagonal, of_a[r], of_b);
                        diagonal = left[r];
                        left[r] = up;
                        if (r % 2 == 1) most = __vimax3_s16x2(most, left[r - 1], up);
                    }
                    bottom = up;
                    if (lane == kLanes - 1 && !is_last) row[j] = bottom;
                }
            }
            __syncwarp();  // the row is complete
        }
        for (int distance = kLanes / 2; distance > 0; distance /= 2)
            most = __vmaxs2(most, __shfl_xor_sync(kWholeWarp, most, distance));
        if (lane == 0 && pairs > 0) scores[first] = static_cast<int>(most & 0xffff);
        if (lane == 0 && pairs > 1) scores[second] = static_cast<int>(most >> 16);
    }
}

template <int kLanes, int kEach>
void launch_search_halves(const LocalRule& of, const Symbol* query, int m, const DatabaseView& database,
                          int* scores, cudaStream_t stream) {
    const HalvesRule rule{both_halves(of.match), both_halves(of.mismatch), both_halves(of.gap)};
    const unsigned most = course::resident_blocks(search_halves<kLanes, kEach>, kSearchBlock);
    const std::size_t groups = course::ceil_div(std::size_t(database.count), std::size_t{2});
    const unsigned needed = course::blocks_for(groups * kLanes, kSearchBlock);
    const unsigned grid = needed < most ? needed : most;
    cudaMemsetAsync(database.ticket, 0, sizeof(int), stream);
    search_halves<kLanes, kEach><<<grid, kSearchBlock, 0, stream>>>(rule, query, m, database, scores);
}

}  // namespace day13
