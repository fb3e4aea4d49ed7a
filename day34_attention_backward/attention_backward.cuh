// Day 34: the gradients of softmax(scale Q K^T) V with respect to Q, K and V.
// Day 26 has the forward pass. S = scale Q K^T, P = softmax(S), and d_out is given:
//
//     dV = P^T d_out    dP = d_out V^T    dS = P (dP - D)    dQ = scale dS K    dK = scale dS^T Q
//
// with D[i] = d_out[i] . out[i], and P[i][j] = exp(S[i][j] - lse[i]). An element of P is an
// attention weight.
//
//   version           for          what is new                             what limits it
//   naive             FP32         P and dS are stored                     their memory, and a load per multiply-add
//   recompute         FP32         P and dS tile by tile, in two passes    seven products for five; shared memory
//   one_pass_atomic   FP32         dQ is summed by atomics                 shared memory; any order of the sums
//   one_pass_ordered  FP32         blocks add to dQ in turns               blocks wait for each other
//   tensor_cores      FP16, BF16   products by mma.sync                    fragments through registers
//   hopper            FP16, BF16   TMA, wgmma, dQ summed in bulk           shared memory
//   hopper_ordered    FP16, BF16   in turns                                blocks wait for each other
//
// The first two are here; tiles.cuh has the operations of `recompute` on a tile. The others are in
// one_pass.cuh, tensor_cores.cuh and hopper.cuh.
//
//   ./course run day34                               every version, verified and timed
//   ./course run day34 --size 4x8x2048x64 batch x heads x tokens x head dimension
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "attention_backward.hpp"
#include "common/bench/attention.hpp"
#include "parts.cuh"
#include "tiles.cuh"

namespace day34 {

// --- Version 1 -----------------------------------------------------------------------------------

// Idea: the formulas as on paper. One kernel stores P and dS, with a thread per element; the next
// two multiply.
// Cost removed: the softmax. With lse from the forward pass, a weight is one exponential.
// Still limits it: the memory of two matrices of all scores, 2 GB for 16 heads of 4096 tokens, and
// two loads for each multiply-add.
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

// --- Version 2 -----------------------------------------------------------------------------------

// From tiles.cuh: load_tile() loads 32 rows of a head, weigh_tile() computes P and dS of a tile.
// kAcross threads share a row.

// Idea: recompute P and dS, tile by tile, in shared memory. A block of this kernel has 32 rows of Q
// and all their keys; one of the next kernel has 32 keys and all rows that see them.
// Cost removed: the matrices of scores, and most loads from global memory.
// Still limits it: both kernels compute S and dP, so there are seven products instead of five.
// Shared memory delivers about one number for each multiply-add.
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

}  // namespace day34
