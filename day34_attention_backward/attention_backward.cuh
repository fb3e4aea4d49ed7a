// Day 34: the gradients of softmax(scale Q K^T) V with respect to Q, K and V.
// Day 26 has the forward pass. S = scale Q K^T, P = softmax(S), and d_out is given:
//
//     dV = P^T d_out    dP = d_out V^T    dS = P (dP - D)    dQ = scale dS K    dK = scale dS^T Q
//
// with D[i] = d_out[i] . out[i], and P[i][j] = exp(S[i][j] - lse[i]). An element of P is an
// attention weight.
//
//   version           what is new                              what limits it
//   naive             P and dS are stored                      L1: a load per multiply-add
//   recompute         P and dS tile by tile, in two passes     seven products for five; shared memory
//
// Each kernel is followed by its launch. parts.cuh has the first kernel of both versions, which
// computes D. beyond/ has versions with one pass, and with tensor cores (day 40).
//
//   ./course run day34                               every version, verified and timed
//   ./course run day34 --program                     program.cu: the gradients of one head
//   ./course run day34 --size 4x8x2048x64            batch x heads x tokens x head dimension
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "attention_backward.hpp"
#include "common/bench/attention.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "parts.cuh"

namespace day34 {

// --- Version 1 -----------------------------------------------------------------------------------

constexpr int kThreads = 256;  // of a block

// Idea: the formulas as on paper. One kernel stores P and dS, with a thread per element; the next
// two multiply.
// Cost removed: the softmax. With lse from the forward pass, a weight is one exponential.
// Still limits it: two loads for each multiply-add, those of k with a sector per lane (counters: L1
// 100 % busy). And two matrices of all scores take 2 GB for 16 heads of 4096 tokens.
__global__ void naive_weights(const Gradient<float> a, const RowTerms terms, float* p, float* ds,
                              std::size_t elements) {
    const std::size_t index = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index >= elements) return;
    const std::size_t length_q = a.q.extents().length;
    const std::size_t length_k = a.k.extents().length;
    const std::size_t key = index % length_k;
    const std::size_t row = index / length_k % length_q;
    const std::size_t head = index / length_k / length_q;
    float weight = 0;
    float gradient = 0;
    if (key < course::attention::visible_keys(row, length_q, length_k, a.causal)) {
        const float* const q = row_of(a.q, head, row);
        const float* const d_out = row_of(a.d_out, head, row);
        const float* const k = row_of(a.k, head, key);
        const float* const v = row_of(a.v, head, key);
        float score = 0;
        float dp = 0;
        for (int c = 0; c < a.q.dim(); ++c) {
            score += q[c] * k[c];
            dp += d_out[c] * v[c];
        }
        weight = exp2f(score * (a.scale * kLog2E) - terms.lse[head * terms.padded + row]);
        gradient = weight * (dp - terms.d[head * terms.padded + row]);
    }
    p[index] = weight;
    ds[index] = gradient;
}

inline std::size_t heads_of(const Extents& e) {
    return e.batch * e.heads;
}
inline std::size_t elements_of(const Extents& e) {
    return heads_of(e) * e.length * e.dim;
}

inline void launch_naive_weights(const Gradient<float>& a, const RowTerms& terms, float* p, float* ds,
                                 cudaStream_t stream) {
    const std::size_t scores = heads_of(a.q.extents()) * a.q.extents().length * a.k.extents().length;
    naive_weights<<<course::blocks_for(scores, kThreads), kThreads, 0, stream>>>(a, terms, p, ds, scores);
}

// A thread per element of dK and dV: a column of P and dS.
__global__ void naive_keys(const Gradient<float> a, const float* p, const float* ds, std::size_t elements) {
    const std::size_t index = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index >= elements) return;
    const std::size_t length_q = a.q.extents().length;
    const std::size_t length_k = a.k.extents().length;
    const std::size_t col = index % a.k.extents().dim;
    const std::size_t key = index / a.k.extents().dim % length_k;
    const std::size_t head = index / a.k.extents().dim / length_k;
    float dk = 0;
    float dv = 0;
    for (std::size_t row = 0; row < length_q; ++row) {
        const std::size_t at = (head * length_q + row) * length_k + key;
        dk += ds[at] * row_of(a.q, head, row)[col];
        dv += p[at] * row_of(a.d_out, head, row)[col];
    }
    row_of(a.dk, head, key)[col] = dk * a.scale;
    row_of(a.dv, head, key)[col] = dv;
}

inline void launch_naive_keys(const Gradient<float>& a, const float* p, const float* ds,
                              cudaStream_t stream) {
    const std::size_t elements = elements_of(a.k.extents());
    naive_keys<<<course::blocks_for(elements, kThreads), kThreads, 0, stream>>>(a, p, ds, elements);
}

// A thread per element of dQ: a row of dS.
__global__ void naive_queries(const Gradient<float> a, const float* ds, std::size_t elements) {
    const std::size_t index = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index >= elements) return;
    const std::size_t length_q = a.q.extents().length;
    const std::size_t length_k = a.k.extents().length;
    const std::size_t col = index % a.q.extents().dim;
    const std::size_t row = index / a.q.extents().dim % length_q;
    const std::size_t head = index / a.q.extents().dim / length_q;
    float dq = 0;
    for (std::size_t key = 0; key < length_k; ++key)
        dq += ds[(head * length_q + row) * length_k + key] * row_of(a.k, head, key)[col];
    row_of(a.dq, head, row)[col] = dq * a.scale;
}

inline void launch_naive_queries(const Gradient<float>& a, const float* ds, cudaStream_t stream) {
    const std::size_t elements = elements_of(a.q.extents());
    naive_queries<<<course::blocks_for(elements, kThreads), kThreads, 0, stream>>>(a, ds, elements);
}

// --- Version 2 -----------------------------------------------------------------------------------

constexpr int kTile = 32;                          // rows of Q, and keys
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

// Idea: recompute P and dS, tile by tile, in shared memory. A block of this kernel has 32 rows of Q
// and all their keys; one of the next kernel has 32 keys and all rows that see them.
// Cost removed: the matrices of scores, and most loads from global memory.
// Still limits it: both kernels compute S and dP, so there are seven products instead of five.
// Shared memory delivers about one number for each multiply-add (counters: 78 % busy).
template <int D>
__global__ void __launch_bounds__(kThreads) recompute_queries(const Gradient<float> a, const RowTerms terms) {
    extern __shared__ float4 memory[];
    Tiles<D>& tiles = *reinterpret_cast<Tiles<D>*>(memory);
    const int in_head = (a.q.length() + kTile - 1) / kTile;  // blocks of a head
    const std::size_t head = blockIdx.x / static_cast<unsigned>(in_head);
    const int row = static_cast<int>(blockIdx.x % static_cast<unsigned>(in_head)) * kTile;
    const int i = static_cast<int>(threadIdx.x) / kAcross;
    const int first = static_cast<int>(threadIdx.x) % kAcross;
    load_tile<D>(tiles.q, a.q, head, row);
    load_tile<D>(tiles.d_out, a.d_out, head, row);

    float dq[D / kAcross] = {};  // row i, columns first, first + 8, ...
    const auto last = static_cast<std::size_t>(min(row + kTile, a.q.length()) - 1);
    const auto keys = static_cast<int>(
        course::attention::visible_keys(last, a.q.extents().length, a.k.extents().length, a.causal));
    for (int key = 0; key < keys; key += kTile) {
        load_tile<D>(tiles.k, a.k, head, key);
        load_tile<D>(tiles.v, a.v, head, key);
        __syncthreads();
        weigh_tile<D>(a, terms, tiles, head, row, key);
        __syncthreads();
        for (int j = 0; j < kTile; ++j) {
#pragma unroll
            for (int n = 0; n < D / kAcross; ++n)
                dq[n] += tiles.ds[i][j] * tiles.k[j][first + n * kAcross];
        }
        __syncthreads();  // K, V and dS are safe to overwrite
    }
    if (row + i >= a.q.length()) return;
    float* const to = row_of(a.dq, head, static_cast<std::size_t>(row + i));
    for (int n = 0; n < D / kAcross; ++n)
        if (first + n * kAcross < a.q.dim()) to[first + n * kAcross] = dq[n] * a.scale;
}

inline unsigned blocks_for_tiles(const Extents& e) {
    return course::blocks_for(heads_of(e) * course::ceil_div<std::size_t>(e.length, kTile), 1);
}

// course::launch: <<<>>>, and the permission for more than 48 KB of shared memory.
template <int D>
void launch_recompute_queries(const Gradient<float>& a, const RowTerms& terms, cudaStream_t stream) {
    course::launch(recompute_queries<D>,
                   {blocks_for_tiles(a.q.extents()), kThreads, sizeof(Tiles<D>), stream}, a, terms);
}

// A thread's dK and dV: of key j of 32, columns first, first + 8, ...
template <int D>
struct KeySums {
    float dk[D / kAcross] = {};
    float dv[D / kAcross] = {};

    __device__ void add(const Tiles<D>& tiles) {
        const int j = static_cast<int>(threadIdx.x) / kAcross;
        const int first = static_cast<int>(threadIdx.x) % kAcross;
        for (int i = 0; i < kTile; ++i) {
#pragma unroll
            for (int n = 0; n < D / kAcross; ++n) {
                dk[n] += tiles.ds[i][j] * tiles.q[i][first + n * kAcross];
                dv[n] += tiles.p[i][j] * tiles.d_out[i][first + n * kAcross];
            }
        }
    }

    __device__ void store(const Gradient<float>& a, std::size_t head, int key) const {
        const int j = key + static_cast<int>(threadIdx.x) / kAcross;
        const int first = static_cast<int>(threadIdx.x) % kAcross;
        if (j >= a.k.length()) return;
        float* const to_k = row_of(a.dk, head, static_cast<std::size_t>(j));
        float* const to_v = row_of(a.dv, head, static_cast<std::size_t>(j));
        for (int n = 0; n < D / kAcross; ++n) {
            const int c = first + n * kAcross;
            if (c >= a.k.dim()) continue;
            to_k[c] = dk[n] * a.scale;
            to_v[c] = dv[n];
        }
    }
};

// The first row that sees `key`, or 0; a multiple of kTile.
__device__ inline int first_row(const Gradient<float>& a, int key) {
    if (!a.causal) return 0;
    return max(0, key - (a.k.length() - a.q.length())) / kTile * kTile;
}

template <int D>
__global__ void __launch_bounds__(kThreads) recompute_keys(const Gradient<float> a, const RowTerms terms) {
    extern __shared__ float4 memory[];
    Tiles<D>& tiles = *reinterpret_cast<Tiles<D>*>(memory);
    const int in_head = (a.k.length() + kTile - 1) / kTile;
    const std::size_t head = blockIdx.x / static_cast<unsigned>(in_head);
    const int key = static_cast<int>(blockIdx.x % static_cast<unsigned>(in_head)) * kTile;
    load_tile<D>(tiles.k, a.k, head, key);
    load_tile<D>(tiles.v, a.v, head, key);
    KeySums<D> sums;
    for (int row = first_row(a, key); row < a.q.length(); row += kTile) {
        load_tile<D>(tiles.q, a.q, head, row);
        load_tile<D>(tiles.d_out, a.d_out, head, row);
        __syncthreads();
        weigh_tile<D>(a, terms, tiles, head, row, key);
        __syncthreads();
        sums.add(tiles);
        __syncthreads();  // Q, d_out, P and dS are safe to overwrite
    }
    sums.store(a, head, key);
}

template <int D>
void launch_recompute_keys(const Gradient<float>& a, const RowTerms& terms, cudaStream_t stream) {
    course::launch(recompute_keys<D>, {blocks_for_tiles(a.k.extents()), kThreads, sizeof(Tiles<D>), stream},
                   a, terms);
}

}  // namespace day34
