// The operations of day 34's FP32 versions on a tile of scores in shared memory: loads, then P and
// dS.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "attention_backward.hpp"
#include "common/bench/attention.hpp"
#include "parts.cuh"

namespace day34 {

constexpr int kTile = 32;                          // rows of Q, and keys
constexpr int kThreads = 256;                      // of a block
constexpr int kAcross = kThreads / kTile;          // threads that share a row
constexpr int kScores = kTile * kTile / kThreads;  // of a thread

// D: the columns of a tile, 64 or 128 (the D of a row is RowTerms::d). Those from dim on are
// zero-filled. A row is padded by one element, so that the same column of adjacent rows is in
// different banks.
template <int D>
struct Tiles {
    float q[kTile][D + 1];
    float d_out[kTile][D + 1];
    float k[kTile][D + 1];
    float v[kTile][D + 1];
    float p[kTile][kTile + 1];  // [row of Q][key]
    float ds[kTile][kTile + 1];
};

// Rows of a head from `first` on. Rows out of range are zero-filled.
template <int D>
__device__ void load_tile(float (&to)[kTile][D + 1], const HeadsView<const float>& view, std::size_t head,
                          int first) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * D; i += kThreads) {
        const int row = first + i / D;
        const int col = i % D;
        const bool inside = row < view.length() && col < view.dim();
        to[i / D][col] = inside ? row_of(view, head, static_cast<std::size_t>(row))[col] : 0.0f;
    }
}

// P and dS of a tile: rows of Q from `row` on, keys from `key` on. A thread has kScores of one row.
template <int D>
__device__ void weigh_tile(const Gradient<float>& a, const RowTerms& terms, Tiles<D>& tiles, std::size_t head,
                           int row, int key) {
    const int i = static_cast<int>(threadIdx.x) / kAcross;
    const int first = static_cast<int>(threadIdx.x) % kAcross;
    float score[kScores] = {};
    float dp[kScores] = {};
    for (int c = 0; c < D; ++c) {
        const float q = tiles.q[i][c];
        const float d_out = tiles.d_out[i][c];
#pragma unroll
        for (int n = 0; n < kScores; ++n) {
            score[n] += q * tiles.k[first + n * kAcross][c];
            dp[n] += d_out * tiles.v[first + n * kAcross][c];
        }
    }
    const std::size_t in_head = static_cast<std::size_t>(row + i);
    const float lse = terms.lse[head * terms.padded + in_head];
    const float d = terms.d[head * terms.padded + in_head];
    const auto seen = static_cast<int>(
        course::attention::visible_keys(in_head, a.q.extents().length, a.k.extents().length, a.causal));
#pragma unroll
    for (int n = 0; n < kScores; ++n) {
        const int j = first + n * kAcross;
        const float weight = key + j < seen ? exp2f(score[n] * (a.scale * kLog2E) - lse) : 0.0f;
        tiles.p[i][j] = weight;
        tiles.ds[i][j] = weight * (dp[n] - d);
    }
}

// The first row that sees `key`, or 0; a multiple of kTile.
__device__ inline int first_row(const Gradient<float>& a, int key) {
    if (!a.causal) return 0;
    return max(0, key - (a.k.length() - a.q.length())) / kTile * kTile;
}

}  // namespace day34
