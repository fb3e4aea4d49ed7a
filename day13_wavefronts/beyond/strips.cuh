// Day 13, beyond: one launch. A warp sweeps a strip of rows from left to right, in registers.
// Strips wait for each other by flags (day 24), lanes pass on cells by shuffles (day 15).
//
// The same sweep serves three problems, which differ in a cell's rule and in what lies outside of
// the table: edit distance, local alignment and the discrete Frechet distance.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "common/device/relaxed.cuh"

namespace day13 {

constexpr int kWarpSize = 32;
constexpr unsigned kWholeWarp = 0xffffffffU;

__device__ inline int shuffle(int value, int lane) {
    return __shfl_sync(kWholeWarp, value, lane);
}
__device__ inline float shuffle(float value, int lane) {
    return __shfl_sync(kWholeWarp, value, lane);
}
__device__ inline float2 shuffle(float2 value, int lane) {
    return make_float2(shuffle(value.x, lane), shuffle(value.y, lane));
}

// A rule: `Element` is what the sequences consist of, `Item` an element in a register, `Value` a
// cell, and `Row` what the strip below needs of a cell. top(j) is the cell in column j above the
// first row, left(i) the one in row i left of the first column; rows and columns of the table count
// from 1. `nothing` belongs to rows after the last one, and, where kHasBest is set, equals no item.
// If kHasBest is set, the kernel finds the largest score(cell).
struct EditRule {
    using Element = std::uint8_t;
    using Item = int;
    using Value = int;
    using Row = int;
    static constexpr bool kHasBest = false;
    __device__ static Item nothing() { return -1; }
    __device__ Value top(int j) const { return j; }
    __device__ Value left(int i) const { return i; }
    // Only the last of three instructions needs `up`, which is computed just before.
    __device__ Value cell(Value up, Value left, Value diagonal, Item of_a, Item of_b) const {
        const int others = __viaddmin_s32(left, 1, diagonal + (of_a != of_b ? 1 : 0));
        return __viaddmin_s32(up, 1, others);
    }
};

// Smith and Waterman: the best score of any part of a with any part of b. A cell is the best score
// of parts that end there, 0 for empty ones.
struct LocalRule {
    using Element = std::uint8_t;
    using Item = int;
    using Value = int;
    using Row = int;
    static constexpr bool kHasBest = true;
    int match;     // > 0
    int mismatch;  // <= 0
    int gap;       // <= 0, for each symbol
    __device__ static Item nothing() { return -1; }
    __device__ static int score(Value cell) { return cell; }
    __device__ Value top(int) const { return 0; }
    __device__ Value left(int) const { return 0; }
    __device__ Value cell(Value up, Value left, Value diagonal, Item of_a, Item of_b) const {
        const int others =
            __viaddmax_s32_relu(left, gap, diagonal + (of_a == of_b ? match : mismatch));  // at least 0
        return __viaddmax_s32(up, gap, others);
    }
};

// The discrete Frechet distance of two curves, squared: a walker on each goes from point to point,
// never back, and the leash between them is as short as possible. A cell is the length that the
// walkers need to come to its two points.
struct FrechetRule {
    using Element = float2;
    using Item = float2;
    using Value = float;
    using Row = float;
    static constexpr bool kHasBest = false;
    __device__ static Item nothing() { return make_float2(0, 0); }
    __device__ Value top(int j) const { return j == 0 ? 0 : INFINITY; }
    __device__ Value left(int i) const { return i == 0 ? 0 : INFINITY; }
    __device__ Value cell(Value up, Value left, Value diagonal, Item of_a, Item of_b) const {
        const float x = of_a.x - of_b.x;
        const float y = of_a.y - of_b.y;
        return fmaxf(x * x + y * y, fminf(up, fminf(left, diagonal)));
    }
};

// Idea: a warp has a strip of 32 x kEach rows. In step s lane l computes kEach cells of column s -
// l, and passes its bottom cell and the item of b to the next lane by shuffles. Items of b and the
// row above the strip are loaded 32 columns at a time. Lane 31 writes the strip's last row over the
// row above. After every 32 columns the warp publishes how far it has come, and the warp of the
// next strip waits for that. A warp draws its strip as a ticket, so it waits only for warps that
// run.
// Cost removed: all launches but one, all barriers, shared memory.
// Still limits it: latency. A strip starts some 64 steps after the strip above, and an SM has one
// warp at most, whose instructions wait for each other: 16 times the cells take 4 times as long.
//
// `row` has n + 1 elements, `board` one more than there are strips, all 0: tickets, and columns
// that are complete in each strip.
template <class Rule, int kEach>
__global__ void __launch_bounds__(kWarpSize)
    sweep_strips(Rule rule, const typename Rule::Element* a, int m, const typename Rule::Element* b, int n,
                 typename Rule::Row* row, int* board, int* best) {
    using Item = typename Rule::Item;
    using Value = typename Rule::Value;
    using Row = typename Rule::Row;
    constexpr int kStrip = kWarpSize * kEach;
    const int lane = static_cast<int>(threadIdx.x);
    const int strip = shuffle(lane == 0 ? atomicAdd(&board[0], 1) : 0, 0);
    int* const done = board + 1;
    const bool is_last = strip + 1 == static_cast<int>(gridDim.x);

    // The row that the strip leaves is the last one of a lane, in the last strip perhaps of
    // another.
    const int last_row = is_last ? (m - 1) % kStrip : kStrip - 1;
    const bool is_bottom = lane == last_row / kEach;
    const int i0 = strip * kStrip + lane * kEach;
    Item of_a[kEach];
    Value left[kEach];
#pragma unroll
    for (int r = 0; r < kEach; ++r) {
        of_a[r] = i0 + r < m ? Item(a[i0 + r]) : Rule::nothing();
        left[r] = rule.left(i0 + r + 1);
    }
    Value above_left = rule.left(i0);
    Value bottom = Value{};
    int most = 0;
    Item of_b = Rule::nothing();

    for (int start = 0; start < n + kWarpSize - 1; start += kWarpSize) {
        const int needed = start + kWarpSize < n ? start + kWarpSize : n;
        if (strip > 0) {
            while (course::load_relaxed(&done[strip - 1]) < needed)
                __nanosleep(100);
            __threadfence();  // acquire: the cells that are announced are visible
        }
        // What lane 0 needs in step start + lane.
        Value above = Value{};
        Item next = Rule::nothing();
        if (start + lane < n) {
            if (strip == 0)
                above = rule.top(start + lane + 1);
            else
                above = row[start + lane + 1];
            next = Item(b[start + lane]);
        }
        const bool is_inside = start >= kWarpSize && start + kWarpSize <= n;  // for every lane and step
        for (int k = 0; k < kWarpSize; ++k) {
            // Lane 0 takes from the lane that has loaded, the others from the lane before.
            const int from = lane == 0 ? k : lane - 1;
            const Value above_now = shuffle(above, k);
            const Item next_now = shuffle(next, k);
            Value up = shuffle(bottom, from);
            of_b = shuffle(of_b, from);
            if (lane == 0) {
                up = above_now;
                of_b = next_now;
            }
            const int j = start + k - lane;
            if (!is_inside && (j < 0 || j >= n)) continue;
            Value diagonal = above_left;
            above_left = up;
#pragma unroll
            for (int r = 0; r < kEach; ++r) {
                up = rule.cell(up, left[r], diagonal, of_a[r], of_b);
                diagonal = left[r];
                left[r] = up;
                if constexpr (Rule::kHasBest) most = max(most, Rule::score(up));
            }
            bottom = up;
            if (is_bottom) {
                Value leaves = bottom;
                if (is_last) {
#pragma unroll
                    for (int r = 0; r < kEach; ++r)
                        if (r == last_row % kEach) leaves = left[r];
                }
                row[j + 1] = Row(leaves);
            }
        }
        if (lane == kWarpSize - 1 && !is_last) {
            __threadfence();  // release: the cells are visible before they are announced
            course::store_relaxed(&done[strip], start + 1 < n ? start + 1 : n);
        }
    }
    if (is_last && lane == 0) row[0] = Row(rule.left(m));
    if constexpr (Rule::kHasBest) {
        for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
            most = max(most, __shfl_xor_sync(kWholeWarp, most, distance));
        }
        if (lane == 0) atomicMax(best, most);
    }
}

// m, n > 0. A warp for each strip; kEach rows per lane.
template <int kEach, class Rule>
void launch_sweep_strips(const Rule& rule, const typename Rule::Element* a, int m,
                         const typename Rule::Element* b, int n, typename Rule::Row* row, int* board,
                         int* best, cudaStream_t stream) {
    const unsigned strips = course::blocks_for(m, kWarpSize * kEach);
    cudaMemsetAsync(board, 0, (strips + 1) * sizeof(int), stream);
    sweep_strips<Rule, kEach><<<strips, kWarpSize, 0, stream>>>(rule, a, m, b, n, row, board, best);
}

// The lengths of leashes from their squares.
inline __global__ void take_roots(float* values, int n) {
    const int j = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (j < n) values[j] = sqrtf(values[j]);
}

inline void launch_take_roots(float* values, int n, cudaStream_t stream) {
    take_roots<<<course::blocks_for(n, 256), 256, 0, stream>>>(values, n);
}

// Without points on one curve: no walk, unless both are empty.
inline __global__ void frechet_borders(float* values, int n, bool is_a_empty) {
    const int j = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (j < n) values[j] = j == 0 && is_a_empty ? 0 : INFINITY;
}

inline void launch_frechet_borders(float* values, int n, bool is_a_empty, cudaStream_t stream) {
    frechet_borders<<<course::blocks_for(n, 256), 256, 0, stream>>>(values, n, is_a_empty);
}

}  // namespace day13
