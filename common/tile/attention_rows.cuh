// What attention by wgmma does with 64 rows of scores that a warpgroup has in registers: which rows
// they are, the mask, the online softmax, and storing the result. Days 43 and 44 multiply.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/bench/attention.hpp"
#include "common/device/half_fragment.cuh"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"

namespace course::attention {

constexpr int kRows = 64;  // of Q, for a warpgroup
constexpr float kMinusInfinity = -__builtin_huge_valf();
constexpr float kNotANumber = __builtin_nanf("");

// T: of the result.
template <class T>
struct Problem {
    HeadsView<T> out;
    int length_k;
    int heads_kv;
    int diagonal;       // row i sees the keys before i + diagonal
    float scale;        // times log2(e): exp(x) = exp2(x log2(e))
    int tiles;          // of rows, in a head
    int heads_at_once;  // their K and V fit in the L2 cache together

    __device__ int seen_by(int row) const { return min(max(row + diagonal, 0), length_k); }
};

// --- Rows of a block -----------------------------------------------------------------------------

// Rows of a head, and the tiles of keys that they see.
struct RowTile {
    int first;
    int head;
    int head_kv;
    int batch;
    int steps;
};

// Tile `index` of `rows` rows, for tiles of `keys` keys. Tiles that run at the same time should
// read the same K and V: some heads are computed together. Of these the last rows come first,
// because a causal mask leaves them the most keys, and a long tile that starts last would delay the
// end.
template <class T>
__device__ RowTile row_tile(const Problem<T>& problem, int index, int rows, int keys) {
    const int heads = static_cast<int>(problem.out.extents().heads);
    const int all_heads = heads * static_cast<int>(problem.out.extents().batch);
    const int group = index / (problem.tiles * problem.heads_at_once);
    const int in_group = index % (problem.tiles * problem.heads_at_once);
    const int heads_here = min(problem.heads_at_once, all_heads - group * problem.heads_at_once);
    const int number = group * problem.heads_at_once + in_group % heads_here;
    RowTile tile{};
    tile.first = (problem.tiles - 1 - in_group / heads_here) * rows;
    tile.head = number % heads;
    tile.head_kv = tile.head / (heads / problem.heads_kv);
    tile.batch = number / heads;
    const int last = min(tile.first + rows, problem.out.length()) - 1;
    tile.steps = (problem.seen_by(last) + keys - 1) / keys;
    return tile;
}

// --- Softmax -------------------------------------------------------------------------------------

// A thread has two of its warp's 16 rows, g and g + 8, where lane = 4 g + t: of a row it has
// columns 2 t and 2 t + 1 of every eight. Register 4 j + 2 h + i is column 8 j + 2 t + i of row g +
// 8 h.
__device__ inline int row_in_tile() {
    const int thread = static_cast<int>(threadIdx.x);
    return thread / 32 % 4 * 16 + thread % 32 / 4;
}

// Scores of keys that a row does not see become -Inf: row h sees the first seen[h] of the tile.
template <int COUNT>
__device__ void mask(float (&scores)[COUNT], int seen_by_upper, int seen_by_lower) {
    const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int seen = i / 2 % 2 == 0 ? seen_by_upper : seen_by_lower;
        scores[i] = i / 4 * 8 + column + i % 2 < seen ? scores[i] : kMinusInfinity;
    }
}

// The online softmax of a thread's rows (day 26), rescaled lazily: the maximum only prevents
// overflow, so it stays until a weight would exceed 2^(LARGEST_EXPONENT + SLACK).
template <int SLACK = 8, int LARGEST_EXPONENT = 0>
struct OnlineSoftmax {
    float max[2] = {kMinusInfinity, kMinusInfinity};  // of the scores so far, times scale
    float sum[2] = {0, 0};                            // of this lane's weights
    float factor[2] = {1, 1};  // by which sums relative to the last maximum are multiplied

    // Replaces scores by weights, exp2(score scale - max) 2^LARGEST_EXPONENT.
    template <int COUNT>
    __device__ void weigh(float (&scores)[COUNT], float scale) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float top[2] = {scores[2 * h], scores[2 * h + 4]};  // two chains: half the latency
#pragma unroll
            for (int i = 2 * h; i < COUNT; i += 4)
                top[i / 4 % 2] = fmaxf(top[i / 4 % 2], fmaxf(scores[i], scores[i + 1]));
            float highest = fmaxf(top[0], top[1]);
            highest = fmaxf(highest, __shfl_xor_sync(kWholeWarp, highest, 1));
            highest = fmaxf(highest, __shfl_xor_sync(kWholeWarp, highest, 2)) * scale;
            const bool raised = highest > max[h] + SLACK;
            factor[h] = raised ? ptx::exp2_approx(max[h] - highest) : 1.0f;
            // A score overflowed. Without this, all weights would be 0.
            if (highest == -kMinusInfinity) factor[h] = kNotANumber;
            if (raised) max[h] = highest;
            // If all scores are -Inf, so is the maximum, and -Inf - -Inf would be NaN.
            const float shift = max[h] == kMinusInfinity ? 0.0f : max[h] - LARGEST_EXPONENT;
            float two_sums[2] = {0, 0};
#pragma unroll
            for (int i = 2 * h; i < COUNT; i += 4) {
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    scores[i + j] = ptx::exp2_approx(fmaf(scores[i + j], scale, -shift));
                    two_sums[j] += scores[i + j];
                }
            }
            sum[h] = sum[h] * factor[h] + (two_sums[0] + two_sums[1]);
        }
    }

    // In the whole warp: must the sums so far be rescaled?
    __device__ bool rescales() const {
        return __any_sync(kWholeWarp, factor[0] != 1.0f || factor[1] != 1.0f) != 0;
    }
    template <int COUNT>
    __device__ void rescale(float (&out)[COUNT]) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            out[i] *= factor[i / 2 % 2];
    }

    // `by` / the sum of all four lanes; 0 for a row that sees no key, also by Inf or NaN.
    __device__ float inverse_of_sum(int h, float by = 1) const {
        float total = sum[h];
        total += __shfl_xor_sync(kWholeWarp, total, 1);
        total += __shfl_xor_sync(kWholeWarp, total, 2);
        return total == 0 ? 0.0f : 1 / total * by;
    }
};

// The scores of tile `step` of 2 COUNT keys become weights. `first` is the warpgroup's first row,
// `scale` a positive factor of the scores.
template <class T, class Softmax, int COUNT>
__device__ void weigh_tile(const Problem<T>& problem, Softmax& softmax, float (&scores)[COUNT], int first,
                           int step, float scale) {
    constexpr int KEYS = 2 * COUNT;
    if ((step + 1) * KEYS > problem.seen_by(first)) {
        const int row = first + row_in_tile();
        mask(scores, problem.seen_by(row) - step * KEYS, problem.seen_by(row + 8) - step * KEYS);
    }
    softmax.weigh(scores, scale);
}
template <class T, class Softmax, int COUNT>
__device__ void weigh_tile(const Problem<T>& problem, Softmax& softmax, float (&scores)[COUNT], int first,
                           int step) {
    weigh_tile(problem, softmax, scores, first, step, problem.scale);
}

// --- The result ----------------------------------------------------------------------------------

// Divides 64 rows from `first` on by the sums of their weights and stores them. The four lanes of a
// row exchange pairs, so that each stores 8 adjacent elements, 16 bytes. `factor`: the scale of V.
template <class T, int D, class Softmax>
__device__ void store_rows(const Problem<T>& problem, const RowTile& tile, int first, const Softmax& softmax,
                           const float (&out)[D / 2], float factor = 1) {
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const float inverse = softmax.inverse_of_sum(h, factor);
        const int row = first + row_in_tile() + h * 8;
        T* const to = problem.out.head(tile.batch, tile.head) +
                      static_cast<std::size_t>(row) * problem.out.strides().row;
#pragma unroll
        for (int c = 0; c < D; c += 32) {
            unsigned own[4];  // columns 2 t and 2 t + 1 of eight c / 8 + i
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int first_of_two = (c / 8 + i) * 4 + h * 2;
                own[i] = pair<T>(out[first_of_two] * inverse, out[first_of_two + 1] * inverse);
            }
            unsigned row_of_eight[4];  // of eight c / 8 + t: the pairs of lanes 0 to 3
#pragma unroll
            for (int distance = 0; distance < 4; ++distance) {
                const int other = t ^ distance;
                const unsigned given =
                    other & 2 ? (other & 1 ? own[3] : own[2]) : (other & 1 ? own[1] : own[0]);
                const unsigned got = __shfl_xor_sync(kWholeWarp, given, distance);
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    if (other == i) row_of_eight[i] = got;
            }
            const int column = c + t * 8;
            if (row < problem.out.length() && column < problem.out.dim())
                *reinterpret_cast<uint4*>(to + column) = {row_of_eight[0], row_of_eight[1], row_of_eight[2],
                                                          row_of_eight[3]};
        }
    }
}

}  // namespace course::attention
