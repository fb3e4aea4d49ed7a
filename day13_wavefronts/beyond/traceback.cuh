// Day 13, beyond: the alignment itself. The sweep of strips.cuh also stores the direction from
// which each cell came, two bits a cell, and a second kernel walks back along them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "alignments.hpp"
#include "common/device/grid.hpp"
#include "common/device/relaxed.cuh"
#include "strips.cuh"

namespace day13 {

// Rules as in strips.cuh, whose cells also yield the step that leads to them, as two bits: 0 where
// the alignment begins after the cell, else a Step.
struct EditTraceRule : EditRule {
    static constexpr bool kIsLocal = false;
    __device__ Value cell(Value up, Value left, Value diagonal, Item of_a, Item of_b, unsigned& step) const {
        const Value result = EditRule::cell(up, left, diagonal, of_a, of_b);
        step = unsigned(Step::kOnlyB);
        if (result == up + 1) step = unsigned(Step::kOnlyA);
        if (result == diagonal + (of_a != of_b ? 1 : 0)) step = unsigned(Step::kPair);
        return result;
    }
};

struct LocalTraceRule : LocalRule {
    static constexpr bool kIsLocal = true;
    __device__ Value cell(Value up, Value left, Value diagonal, Item of_a, Item of_b, unsigned& step) const {
        const Value result = LocalRule::cell(up, left, diagonal, of_a, of_b);
        step = unsigned(Step::kOnlyB);
        if (result == up + gap) step = unsigned(Step::kOnlyA);
        if (result == diagonal + (of_a == of_b ? match : mismatch)) step = unsigned(Step::kPair);
        if (result == 0) step = 0;
        return result;
    }
};

constexpr int kTraceRows = 4;  // of a lane: their directions are one byte
constexpr int kTraceStrip = kWarpSize * kTraceRows;

// The byte of the lane's four cells in a step of the strip, in a table of n columns.
__host__ __device__ inline std::size_t direction_index(int n, int strip, int step, int lane) {
    return (std::size_t(strip) * (std::size_t(n) + kWarpSize - 1) + std::size_t(step)) * kWarpSize +
           std::size_t(lane);
}

// The higher score; of equal ones the smaller column, then the smaller row.
__device__ inline bool is_better(const End& x, const End& y) {
    if (x.score != y.score) return x.score > y.score;
    return x.j != y.j ? x.j < y.j : x.i < y.i;
}

__device__ inline End best_of_warp(End end) {
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
        const End other{__shfl_xor_sync(kWholeWarp, end.score, distance),
                        __shfl_xor_sync(kWholeWarp, end.i, distance),
                        __shfl_xor_sync(kWholeWarp, end.j, distance)};
        if (is_better(other, end)) end = other;
    }
    return end;
}

// Idea: sweep_strips with four rows per lane, which also stores where cells come from. A step's
// bytes are adjacent, lane after lane: the table of directions is skewed as the wave is, so a
// warp's store fills one sector of 32 bytes. Row after row, it would touch 32 sectors.
// Still limits it: latency, as sweep_strips: the stores cost 0.4 of 3.8 ms with 16,384 symbols.
//
// `row` has n + 1 elements, `board` one more than there are strips, all 0; `ends` one per strip.
template <class Rule>
__global__ void __launch_bounds__(kWarpSize)
    trace_strips(Rule rule, const Symbol* a, int m, const Symbol* b, int n, int* row, int* board,
                 std::uint8_t* directions, End* ends) {
    const int lane = static_cast<int>(threadIdx.x);
    const int strip = shuffle(lane == 0 ? atomicAdd(&board[0], 1) : 0, 0);
    int* const done = board + 1;
    const int i0 = strip * kTraceStrip + lane * kTraceRows;
    int of_a[kTraceRows];
    int left[kTraceRows];
#pragma unroll
    for (int r = 0; r < kTraceRows; ++r) {
        of_a[r] = i0 + r < m ? a[i0 + r] : Rule::nothing();
        left[r] = rule.left(i0 + r + 1);
    }
    int above_left = rule.left(i0);
    int bottom = 0;
    int of_b = Rule::nothing();
    End end{0, 0, 0};

    for (int start = 0; start < n + kWarpSize - 1; start += kWarpSize) {
        if (strip > 0) {
            const int needed = start + kWarpSize < n ? start + kWarpSize : n;
            while (course::load_relaxed(&done[strip - 1]) < needed)
                __nanosleep(100);
            __threadfence();  // acquire: the cells that are announced are visible
        }
        int above = 0;
        int next = Rule::nothing();
        if (start + lane < n) {
            above = strip == 0 ? rule.top(start + lane + 1) : row[start + lane + 1];
            next = b[start + lane];
        }
        for (int k = 0; k < kWarpSize; ++k) {
            const int from = lane == 0 ? k : lane - 1;
            const int above_now = shuffle(above, k);
            const int next_now = shuffle(next, k);
            int up = shuffle(bottom, from);
            of_b = shuffle(of_b, from);
            if (lane == 0) {
                up = above_now;
                of_b = next_now;
            }
            if (start + k >= n + kWarpSize - 1) break;  // all lanes have computed their last cells
            const int j = start + k - lane;
            unsigned steps = 0;
            if (j >= 0 && j < n) {
                int diagonal = above_left;
                above_left = up;
#pragma unroll
                for (int r = 0; r < kTraceRows; ++r) {
                    unsigned step;
                    up = rule.cell(up, left[r], diagonal, of_a[r], of_b, step);
                    diagonal = left[r];
                    left[r] = up;
                    steps |= step << (2 * r);
                    // Rows after the last one end no alignment: their cells are no larger than one
                    // above.
                    if (Rule::kIsLocal && up > end.score) end = {up, i0 + r + 1, j + 1};
                }
                bottom = up;
                if (lane == kWarpSize - 1) row[j + 1] = bottom;
            }
            // Lanes without a cell store zeros: walk_windows loads 16 bytes at a time.
            directions[direction_index(n, strip, start + k, lane)] = static_cast<std::uint8_t>(steps);
        }
        if (lane == kWarpSize - 1) {
            __threadfence();  // release: the cells are visible before they are announced
            course::store_relaxed(&done[strip], start + 1 < n ? start + 1 : n);
        }
    }
    if constexpr (Rule::kIsLocal) {
        end = best_of_warp(end);
        if (lane == 0) ends[strip] = end;
    } else {
        // The last cell of the table is that of one lane.
#pragma unroll
        for (int r = 0; r < kTraceRows; ++r)
            if (i0 + r + 1 == m) ends[0] = {left[r], m, n};
    }
}

// Idea: one thread starts at the end of the alignment and takes one step after the other back to
// its beginning.
// Still limits it: latency. Each step has to wait for a load, whose address depends on the step
// before: 60 % of the thread's time (counters).
__global__ void walk_thread(bool is_local, int n, const std::uint8_t* directions, const End* ends, int strips,
                            Step* script, int places, Alignment* alignment) {
    End end = ends[0];
    for (int s = 1; is_local && s < strips; ++s)
        if (is_better(ends[s], end)) end = ends[s];
    int i = end.i;
    int j = end.j;
    int place = places;
    while (is_local ? i > 0 && j > 0 : i > 0 || j > 0) {
        unsigned step = unsigned(i > 0 ? Step::kOnlyA : Step::kOnlyB);  // at the border of the table
        if (i > 0 && j > 0) {
            const int lane = (i - 1) % kTraceStrip / kTraceRows;
            const int steps = directions[direction_index(n, (i - 1) / kTraceStrip, j - 1 + lane, lane)];
            step = unsigned(steps) >> (2 * ((i - 1) % kTraceRows)) & 3;
        }
        if (step == 0) break;
        script[--place] = static_cast<Step>(step);
        if (step != unsigned(Step::kOnlyB)) --i;
        if (step != unsigned(Step::kOnlyA)) --j;
    }
    *alignment = {end.score, i, end.i, j, end.j, places - place};
}

constexpr int kWindow = 128;  // steps of a strip

// Idea: a warp loads a window of the directions into shared memory, 128 steps of a strip, which are
// 4 KB without gaps. Then one lane walks until it leaves the window.
// Cost removed: a wait for memory in every step. A step of the walk goes back by at most two steps
// of the strip, and by two only where a pair leads to another lane, every fourth row. So a window
// lasts for about 100 steps or more, or until the walk comes to the strip above.
// Still limits it: latency of one thread's instructions. One SM works, with one warp.
__global__ void __launch_bounds__(kWarpSize)
    walk_windows(bool is_local, int n, const std::uint8_t* directions, const End* ends, int strips,
                 Step* script, int places, Alignment* alignment) {
    __shared__ uint4 window[kWindow * kWarpSize / sizeof(uint4)];
    const auto* const in_window = reinterpret_cast<const std::uint8_t*>(window);
    const int lane = static_cast<int>(threadIdx.x);
    End end = ends[0];
    if (is_local) {
        for (int s = lane; s < strips; s += kWarpSize)
            if (is_better(ends[s], end)) end = ends[s];
        end = best_of_warp(end);
    }
    int i = end.i;
    int j = end.j;
    int place = places;
    bool is_at_end = false;
    while (!is_at_end && i > 0 && j > 0) {
        const int strip = (i - 1) / kTraceStrip;
        const int last = j - 1 + (i - 1) % kTraceStrip / kTraceRows;  // the step of cell (i, j)
        const int first = last + 1 > kWindow ? last + 1 - kWindow : 0;
        const auto* const source =
            reinterpret_cast<const uint4*>(directions + direction_index(n, strip, first, 0));
        for (int e = lane; e < (last + 1 - first) * kWarpSize / int(sizeof(uint4)); e += kWarpSize)
            window[e] = source[e];
        __syncwarp();  // the window is complete
        if (lane == 0) {
            while (i > strip * kTraceStrip && j > 0) {
                const int of = (i - 1) % kTraceStrip / kTraceRows;  // the lane that has computed the cell
                const int at = j - 1 + of - first;
                if (at < 0) break;
                const unsigned step =
                    unsigned(in_window[at * kWarpSize + of]) >> (2 * ((i - 1) % kTraceRows)) & 3;
                is_at_end = step == 0;
                if (is_at_end) break;
                script[--place] = static_cast<Step>(step);
                if (step != unsigned(Step::kOnlyB)) --i;
                if (step != unsigned(Step::kOnlyA)) --j;
            }
        }
        i = shuffle(i, 0);
        j = shuffle(j, 0);
        is_at_end = shuffle(int(is_at_end), 0) != 0;
        __syncwarp();  // lane 0 has read the window
    }
    if (lane != 0) return;
    if (!is_local) {  // at the border of the table
        for (; i > 0; --i)
            script[--place] = Step::kOnlyA;
        for (; j > 0; --j)
            script[--place] = Step::kOnlyB;
    }
    *alignment = {end.score, i, end.i, j, end.j, places - place};
}

// m, n > 0. A warp for each strip; then one thread or one warp walks.
template <bool kHasWindows, class Rule>
void launch_trace(const Rule& rule, const Symbol* a, int m, const Symbol* b, int n, Step* script,
                  Alignment* alignment, TraceWorkspace& workspace, cudaStream_t stream) {
    const unsigned strips = course::blocks_for(m, kTraceStrip);
    cudaMemsetAsync(workspace.board(), 0, (strips + 1) * sizeof(int), stream);
    trace_strips<<<strips, kWarpSize, 0, stream>>>(rule, a, m, b, n, workspace.row(), workspace.board(),
                                                   workspace.directions(), workspace.ends());
    const int count = static_cast<int>(strips);
    if constexpr (kHasWindows) {
        walk_windows<<<1, kWarpSize, 0, stream>>>(Rule::kIsLocal, n, workspace.directions(), workspace.ends(),
                                                  count, script, m + n, alignment);
    } else {
        walk_thread<<<1, 1, 0, stream>>>(Rule::kIsLocal, n, workspace.directions(), workspace.ends(), count,
                                         script, m + n, alignment);
    }
}

// Without symbols on one side: all symbols of the other, or no alignment.
__global__ void trace_borders(bool is_local, int m, int n, Step* script, Alignment* alignment) {
    const int e = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (e < m + n && !is_local) script[e] = m > 0 ? Step::kOnlyA : Step::kOnlyB;
    if (e == 0) *alignment = is_local ? Alignment{} : Alignment{m + n, 0, m, 0, n, m + n};
}

inline void launch_trace_borders(bool is_local, int m, int n, Step* script, Alignment* alignment,
                                 cudaStream_t stream) {
    trace_borders<<<course::blocks_for(m + n + 1, 256), 256, 0, stream>>>(is_local, m, n, script, alignment);
}

}  // namespace day13
