// Day 26: fused attention, softmax(scale Q K^T) V, without ever storing the scores.
// PMPP chapter 20 (5th edition); tiles: chapters 5 and 6, reductions: chapter 10 (both editions).
//
//   version          what is new                             what limits it
//   row_per_warp     online softmax: a running max and sum   a load per multiply-add
//   register_tiles   tiles of K and V serve a whole block    latency: one warp per scheduler
//
// row_per_warp is in this file, register_tiles follows in online_softmax.cuh and
// register_tiles.cuh. Each kernel is followed by its launch. beyond/ has two versions on tensor
// cores, tf32x3 for FP32 and tensor_cores for FP16 and BF16.
//
// A row of Q needs the maximum of its scores before the first exponential. The online softmax keeps
// three running values instead: the maximum m, the sum l of exponentials, and the sum o of weighted
// rows of V. When a score raises the maximum from m to m', l and o are multiplied by exp(m - m').
//
//   ./course run day26                          every version, verified and timed
//   ./course run day26 --size 4x8x2048x64 batch x heads x tokens x head dimension
#pragma once

#include "attention_tile.cuh"
#include "common/device/warp.cuh"
#include "fused_attention.hpp"
#include "launch.cuh"

namespace day26 {

constexpr int kWarps = 4;  // of a block of row_per_warp

// Idea: the online softmax as on paper. A warp has a row of Q and takes 32 keys at a time. Lane i
// computes the score of key i. Then a shuffle broadcasts one weight after the other, and each lane
// adds to its own columns of the result.
// Cost removed: the matrix of scores, written once and read twice, and its memory.
// Still limits it: each warp reads all of K and V for one row: a load for each multiply-add.
template <int D>
__global__ void attention_row_per_warp(Attention<float> a) {
    constexpr int COLS = D / 32;  // columns of a lane: lane, lane + 32, ...
    __shared__ float queries[kWarps][D];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const Extents extents = a.q.extents();
    // The number of this warp's row among the rows of all heads of all batches.
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
    if (index >= extents.batch * extents.heads * extents.length) return;
    const std::size_t row = index % extents.length;
    const std::size_t head = index / extents.length % extents.heads;
    const std::size_t batch = index / extents.length / extents.heads;
    const std::size_t head_kv = head / (extents.heads / a.k.extents().heads);
    const float* const k = a.k.head(batch, head_kv);
    const float* const v = a.v.head(batch, head_kv);
    const auto keys = static_cast<int>(visible_keys(row, extents.length, a.k.extents().length, a.causal));
    const int dim = a.q.dim();

    float* const query = queries[threadIdx.x / 32];
    for (int c = lane; c < dim; c += 32)
        query[c] = a.q.head(batch, head)[row * a.q.strides().row + c];
    __syncwarp();

    float max = -kInfinity;  // of the scores so far, times log2(e)
    float sum = 0;           // of this lane's exponentials, relative to max
    float out[COLS] = {};    // sum of weighted rows of V, relative to max
    for (int first = 0; first < keys; first += 32) {
        float score = -kInfinity;
        if (first + lane < keys) {
            const float* const key = k + static_cast<std::size_t>(first + lane) * a.k.strides().row;
            score = 0;
            for (int c = 0; c < dim; ++c)
                score += query[c] * key[c];
            score *= a.scale * kLog2E;
        }
        const float new_max = fmaxf(max, course::warp_reduce(score, fmaxf));
        const float shift = new_max == -kInfinity ? 0 : new_max;  // -Inf - -Inf would be NaN
        const float factor = exp2f(max - shift);
        const float p = exp2f(score - shift);
        max = new_max;
        sum = sum * factor + p;
#pragma unroll
        for (int i = 0; i < COLS; ++i)
            out[i] *= factor;
        for (int j = 0; j < min(keys - first, 32); ++j) {
            const float p_of_key = __shfl_sync(course::kWholeWarp, p, j);
            const float* const value = v + static_cast<std::size_t>(first + j) * a.v.strides().row;
#pragma unroll
            for (int i = 0; i < COLS; ++i) {
                if (lane + i * 32 < dim) out[i] += p_of_key * value[lane + i * 32];
            }
        }
    }
    sum = course::warp_reduce(sum, [](float x, float y) { return x + y; });
    const float inverse = sum == 0 ? 0 : 1 / sum;
#pragma unroll
    for (int i = 0; i < COLS; ++i) {
        if (lane + i * 32 < dim)
            a.out.head(batch, head)[row * a.out.strides().row + lane + i * 32] = out[i] * inverse;
    }
}

inline void launch_row_per_warp(const Attention<float>& attention, cudaStream_t stream) {
    const Extents q = attention.q.extents();
    const unsigned blocks =
        course::blocks_for(q.batch * q.heads * q.length * 32, kWarps * 32);  // 32 threads a row
    with_dim<32, 64, 96, 128>(q.dim, [&](auto dim) {
        attention_row_per_warp<dim()><<<blocks, kWarps * 32, 0, stream>>>(attention);
    });
}

}  // namespace day26
