// Day 25, parts 2 and 3: self-attention, softmax(Q K^T / sqrt(d)) V, in three launches, and the
// bias of a layer. PMPP chapters 5 and 6 (products), 10 (reductions), 20 (5th edition).
//
//   kernel               computes                                       what limits it
//   multiply_matrices    scores = scale Q K^T, out = weights V          shared memory; latency of few blocks
//   softmax_long_rows    weights = softmax(scores), masked, in place    three reads of each row
//   fill_rows_kernel     a bias in every row, for a product to add to   L2, which takes the stores
//
// The two versions differ in the tiles of the products (matmul_tile.cuh); both read K^T as it is:
//
//   version       product
//   tiled         multiply_matrices, 32 x 32 tiles, one result per thread
//   thread_tile   multiply_matrices, 64 x 64 tiles, 4 x 4 results per thread
//
// Each kernel is followed by its launch. self_attention.cpp calls product, softmax and product for
// all heads, attention_layer.cpp adds the projections. Two more versions, and a softmax that reads
// short rows once, are in beyond/.
//
//   ./course run day25                          all versions, verified and timed
//   ./course run day25 --program                program.cu: one head, from main() to the result
//   ./course run day25 --size 1x1x2048x512      batch x heads x tokens x head dimension
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/device/block_reduce.cuh"
#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "matmul_tile.cuh"

namespace day25 {

using course::DeviceMatrix;
using course::DeviceSpan;
using course::Max;
using course::Sum;

// --- Matrix products -----------------------------------------------------------------------------

// Idea: C = alpha A op(B) + beta C in tiles (matmul_tile.cuh). op(B) = B^T needs no transposed
// copy, because only the load of B's tile differs. So Q K^T reads K as it is, and the division by
// sqrt(d) is alpha.
// Cost removed: with 32 x 32 tiles and one result per thread, 31 of 32 global loads; with 64 x 64
// and 4 x 4 results, also 3 of 4 shared loads.
// Still limits it: with 32 x 32 tiles shared loads (counters: shared memory 74 % busy). With 64 x
// 64, and a head dimension of 64, latency: a product with V has one block per 64 tokens of a head,
// and no unit is above 29 %. Loads of tiles do not overlap with arithmetic.
template <class Tile, bool TRANSPOSE_B>
__global__ void __launch_bounds__(Tile::THREADS)
    multiply_matrices(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                      float alpha, float beta) {
    __shared__ typename Tile::Shared shared;
    const std::size_t tiles_across = course::ceil_div<std::size_t>(c.cols(), Tile::BN);
    const std::size_t row0 = blockIdx.x / tiles_across * Tile::BM;
    const std::size_t col0 = blockIdx.x % tiles_across * Tile::BN;

    Tile tile;
    tile.template multiply<TRANSPOSE_B>(a, b, row0, col0, shared);

    for (int i = 0; i < Tile::TM; ++i) {
        for (int j = 0; j < Tile::TN; ++j) {
            const std::size_t row = row0 + Tile::row() + i * Tile::ROWS;
            const std::size_t col = col0 + Tile::col() + j * Tile::COLS;
            if (row >= c.rows() || col >= c.cols()) continue;
            const float old = beta == 0 ? 0.0f : beta * c(row, col);
            c(row, col) = alpha * tile.sum[i][j] + old;
        }
    }
}

// The tiles of the two versions, `tiled` and `thread_tile`.
using OneResult = Tile<32, 32, 32, 1, 1>;
using SixteenResults = Tile<64, 64, 16, 4, 4>;

template <class Tile, bool TRANSPOSE_B>
void launch_multiply_matrices(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                              float alpha, float beta, cudaStream_t stream) {
    const std::size_t tiles =
        course::ceil_div<std::size_t>(c.rows(), Tile::BM) * course::ceil_div<std::size_t>(c.cols(), Tile::BN);
    const unsigned grid = course::blocks_for(tiles, 1);
    multiply_matrices<Tile, TRANSPOSE_B><<<grid, Tile::THREADS, 0, stream>>>(a, b, c, alpha, beta);
}

// --- Masked softmax ------------------------------------------------------------------------------

// The keys that one query sees.
struct Visible {
    std::size_t end;              // no key from here on
    const std::uint8_t* padding;  // or null

    __device__ bool operator()(std::size_t key) const {
        return key < end && (padding == nullptr || padding[key] == 0);
    }
};

// The masks of all rows of the scores.
struct MaskedRows {
    std::size_t rows_per_batch;
    std::size_t queries;
    bool causal;
    const std::uint8_t* padding;

    __device__ Visible visible(std::size_t row, std::size_t keys) const {
        return {causal ? ::min(keys, row % queries + 1) : keys,
                padding == nullptr ? nullptr : padding + row / rows_per_batch * keys};
    }
};

constexpr float kLog2E = 1.44269504f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// exp(x - max), for a row whose maximum is `max`. If the row sees no key, or only scores of -Inf,
// the maximum is -Inf: then 0 is subtracted, because -Inf - -Inf is NaN.
struct Exponential {
    float shift;

    explicit __device__ Exponential(float max) : shift(max == -kInfinity ? 0.0f : max) {}
    __device__ float operator()(float x) const { return exp2f((x - shift) * kLog2E); }
    static __device__ float scale(float sum) { return sum == 0 ? 0.0f : 1.0f / sum; }
};

constexpr int kSoftmaxThreads = 256;
constexpr int kSoftmaxWarps = kSoftmaxThreads / course::kWarpSize;

// op over the values of all threads of the block; every thread gets the result. `parts` serves one
// call.
template <class Op>
__device__ float block_reduce(float value, Op op, float (&parts)[kSoftmaxWarps]) {
    value = course::warp_reduce(value, op);
    if (threadIdx.x % course::kWarpSize == 0) parts[threadIdx.x / course::kWarpSize] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < kSoftmaxWarps; ++i)
        value = op(value, parts[i]);
    return value;
}

// Calls body(pack, key) for this thread's packs of a row; `key` is the pack's first column.
template <int WIDTH, class Body>
__device__ void for_each_pack(const float* row, std::size_t end, Body body) {
    for (std::size_t key = threadIdx.x * WIDTH; key < end; key += kSoftmaxThreads * WIDTH)
        body(course::Pack<float, WIDTH>::load(row + key), key);
}

// Idea: a block for each row, of any length: maximum, sum of exponentials, quotient. Masked scores
// are left out instead of being replaced by -Inf, and the first two reads end at a causal mask.
// Cost removed: a pass that writes -Inf into masked scores.
// Still limits it: memory. The row is read three times; the L1 cache serves what fits into it.
template <int WIDTH>
__global__ void __launch_bounds__(kSoftmaxThreads)
    softmax_long_rows(DeviceMatrix<float> scores, MaskedRows rows) {
    __shared__ float maxima[kSoftmaxWarps];
    __shared__ float sums[kSoftmaxWarps];
    float* const row = scores.data() + blockIdx.x * scores.leading_dimension();
    const Visible visible = rows.visible(blockIdx.x, scores.cols());

    float max = -kInfinity;
    for_each_pack<WIDTH>(row, visible.end, [&](const auto& x, std::size_t key) {
        for (int i = 0; i < WIDTH; ++i)
            max = visible(key + i) ? fmaxf(max, x.value[i]) : max;
    });
    const Exponential exponential(block_reduce(max, Max{}, maxima));

    float sum = 0;
    for_each_pack<WIDTH>(row, visible.end, [&](const auto& x, std::size_t key) {
        for (int i = 0; i < WIDTH; ++i)
            sum += visible(key + i) ? exponential(x.value[i]) : 0.0f;
    });
    const float scale = Exponential::scale(block_reduce(sum, Sum{}, sums));

    for_each_pack<WIDTH>(row, scores.cols(), [&](auto x, std::size_t key) {
        for (int i = 0; i < WIDTH; ++i)
            x.value[i] = visible(key + i) ? exponential(x.value[i]) * scale : 0.0f;
        x.store(row + key);
    });
}

// WIDTH 4 needs 16-byte aligned rows of whole float4s; so does the launch below.
template <int WIDTH>
void launch_softmax_long_rows(DeviceMatrix<float> scores, const MaskedRows& rows, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(scores.rows(), 1);
    softmax_long_rows<WIDTH><<<grid, kSoftmaxThreads, 0, stream>>>(scores, rows);
}

// --- What the layer adds -------------------------------------------------------------------------

constexpr int kFillThreads = 256;
constexpr int kFillRows = 8;

// Idea: a bias is stored first, and the product adds to it (beta = 1). A thread keeps its pack of
// the row and stores it to kFillRows rows.
// Cost removed: loading the bias again for each row.
// Still limits it: L2, which takes the stores (counters: 73 % busy, DRAM 28 %). Every element is
// stored once, and the product loads it.
template <int WIDTH>
__global__ void __launch_bounds__(kFillThreads)
    fill_rows_kernel(DeviceSpan<const float> row, DeviceMatrix<float> out, unsigned blocks_per_row) {
    const std::size_t col =
        (static_cast<std::size_t>(blockIdx.x % blocks_per_row) * kFillThreads + threadIdx.x) * WIDTH;
    const std::size_t first = static_cast<std::size_t>(blockIdx.x / blocks_per_row) * kFillRows;
    if (col >= out.cols()) return;
    const auto pack = course::Pack<float, WIDTH>::load(row.data() + col);
    for (std::size_t i = first; i < ::min(first + kFillRows, out.rows()); ++i)
        pack.store(&out(i, col));
}

template <int WIDTH>
void launch_fill_rows(DeviceSpan<const float> row, DeviceMatrix<float> out, cudaStream_t stream) {
    const unsigned across =
        course::blocks_for(course::ceil_div<std::size_t>(out.cols(), WIDTH), kFillThreads);
    const std::size_t down = course::ceil_div<std::size_t>(out.rows(), kFillRows);
    const unsigned grid = course::blocks_for(across * down, 1);
    fill_rows_kernel<WIDTH><<<grid, kFillThreads, 0, stream>>>(row, out, across);
}

}  // namespace day25
