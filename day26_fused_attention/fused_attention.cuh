// Day 26: fused attention, softmax(scale Q K^T) V, without ever storing the scores.
// PMPP chapter 20 (5th edition); tiles: chapters 5 and 6, reductions: chapter 10 (both editions).
//
//   version          what is new                             what limits it
//   row_per_warp     online softmax: a running max and sum   a load per multiply-add
//   register_tiles   tiles of K and V serve a whole block    latency: one warp per scheduler
//
// This file is the core; each kernel is followed by its launch. online_softmax.cuh has the online
// softmax of register_tiles, with several rows in a thread, and attention_tile.cuh copies tiles.
// beyond/ has two versions on tensor cores (day 40), tf32x3 for FP32 and tensor_cores for FP16 and
// BF16.
//
// A row of Q needs the maximum of its scores before the first exponential. The online softmax keeps
// three running values instead: the maximum m, the sum l of exponentials, and the sum o of weighted
// rows of V. When a score raises the maximum from m to m', l and o are multiplied by exp(m - m').
//
//   ./course run day26                          every version, verified and timed
//   ./course run day26 --size 4x8x2048x64 batch x heads x tokens x head dimension
#pragma once

#include <type_traits>

#include "attention_tile.cuh"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"
#include "fused_attention.hpp"
#include "launch.cuh"
#include "online_softmax.cuh"

namespace day26 {

// --- A warp per row ------------------------------------------------------------------------------

constexpr int kWarps = 4;  // of a block of row_per_warp

// Idea: the online softmax as on paper. A warp has a row of Q and takes 32 keys at a time. Lane i
// computes the score of key i. Then a shuffle broadcasts one weight after the other, and each lane
// adds to its own columns of the result.
// Cost removed: the matrix of scores, written once and read twice, and its memory.
// Still limits it: L1 (counters: 96 % busy). Each warp reads all of K and V for one row: a load for
// each multiply-add.
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

// --- Tiles in registers --------------------------------------------------------------------------
//
// All tiled versions have this main loop: scores of a tile of keys, weights, weighted rows of V.

// A block has BM rows of Q and takes BN keys at a time. A warp has 32 rows: 4 lanes x 8 rows, 4
// apart.
template <int D_, int KEYS_, int WARPS_, int BLOCKS_>
struct RegisterTile {
    static constexpr int D = D_;
    static constexpr int WARPS = WARPS_;
    static constexpr int BLOCKS = BLOCKS_;  // on an SM
    static constexpr int BM = WARPS * 32;
    static constexpr int KEYS = KEYS_;  // of a thread, 8 apart: 8 lanes x KEYS keys
    static constexpr int BN = KEYS * 8;
    static constexpr int THREADS = WARPS * 32;
    static constexpr int ROWS = 8;      // of a thread
    static constexpr int COLS = D / 8;  // of a thread, in fours: columns of the result
};

// The padding of four floats puts a float4 from each of 8 adjacent rows into different banks.
template <class S>
struct RegisterTileMemory {
    float q[S::BM][S::D + 4];
    float k[S::BN][S::D + 4];
    float v[S::BN][S::D];
    float p[S::BM][S::BN + 4];
};

// Idea: Q K^T and p V are matrix products whose left operand stays in place. A thread computes 8
// rows x KEYS keys of the first, then the same 8 rows x D / 8 columns of the second. p goes through
// shared memory: a warp reads only the 32 rows that it wrote. V is copied while K is multiplied,
// and vice versa.
// Cost removed: loads. A value from shared memory takes part in 8 multiply-adds or more.
// Still limits it: latency. Shared memory leaves an SM four warps, one per scheduler, and while
// that warp waits nothing is issued. Counters: FMA 51 % busy; of the time of a warp, 57 % issues,
// 21 % are dispatch stalls, 12 % waits for shared memory. The softmax between the two products
// has few instructions: 56 % of the issue slots are in use, so at most 5 % serve anything but
// multiply-adds.
template <class S, bool ALIGNED>
__global__ __launch_bounds__(S::THREADS, S::BLOCKS) void attention_register_tiles(Attention<float> a,
                                                                                  unsigned heads_at_once) {
    using Pack = course::Pack<float, 4>;
    extern __shared__ float4 memory[];
    RegisterTileMemory<S>& shared = *reinterpret_cast<RegisterTileMemory<S>*>(memory);
    const RowTile<float> tile = row_tile<S::BM>(a, heads_at_once);
    const int dim = a.q.dim();
    const auto copy_k = [&](int first) {
        copy_tile<S::BN, S::D, S::THREADS, ALIGNED>(
            tile.k, a.k.strides().row, first, tile.length_k, dim,
            [&](int row, int pack) { return &shared.k[row][pack * 4]; });
        course::ptx::cp_async_commit();
    };
    const auto copy_v = [&](int first) {
        copy_tile<S::BN, S::D, S::THREADS, ALIGNED>(
            tile.v, a.v.strides().row, first, tile.length_k, dim,
            [&](int row, int pack) { return &shared.v[row][pack * 4]; });
        course::ptx::cp_async_commit();
    };
    copy_tile<S::BM, S::D, S::THREADS, ALIGNED>(tile.q, a.q.strides().row, tile.first, tile.length_q, dim,
                                                [&](int row, int pack) { return &shared.q[row][pack * 4]; });
    copy_k(0);
    copy_v(0);

    const int lane_row = static_cast<int>(threadIdx.x) % 32 / 8;
    const int lane_col = static_cast<int>(threadIdx.x) % 8;
    const auto row_of = [&](int i) { return static_cast<int>(threadIdx.x) / 32 * 32 + i * 4 + lane_row; };
    const auto seen_by = [&](int i) { return tile.seen_by(tile.first + row_of(i)); };
    const float scale = a.scale * kLog2E;
    OnlineSoftmax<S::ROWS, 8> softmax;
    float out[S::ROWS][S::COLS] = {};
    for (int first = 0; first < tile.keys; first += S::BN) {
        course::ptx::cp_async_wait<1>();
        __syncthreads();  // the tile of K is complete

        // scores = Q K^T
        float scores[S::ROWS][S::KEYS] = {};
#pragma unroll 2
        for (int c = 0; c < S::D; c += 4) {
            Pack k[S::KEYS];
#pragma unroll
            for (int j = 0; j < S::KEYS; ++j)
                k[j] = Pack::load(&shared.k[j * 8 + lane_col][c]);
#pragma unroll
            for (int i = 0; i < S::ROWS; ++i) {
                const Pack q = Pack::load(&shared.q[row_of(i)][c]);
#pragma unroll
                for (int n = 0; n < 4; ++n) {
#pragma unroll
                    for (int j = 0; j < S::KEYS; ++j)
                        scores[i][j] += q.value[n] * k[j].value[n];
                }
            }
        }

        // p = exp2(scores - max), to shared memory
        const bool masked = first + S::BN > tile.all_see;
        if (masked) {
#pragma unroll
            for (int i = 0; i < S::ROWS; ++i) {
#pragma unroll
                for (int j = 0; j < S::KEYS; ++j) {
                    if (first + j * 8 + lane_col >= seen_by(i)) scores[i][j] = -kInfinity;
                }
            }
        }
        float factor[S::ROWS];
        const auto score = [&](int i, int j) { return scores[i][j]; };
        if (softmax.template raise_maximum<S::KEYS>(scale, score, factor)) {
#pragma unroll
            for (int i = 0; i < S::ROWS; ++i) {
#pragma unroll
                for (int c = 0; c < S::COLS; ++c)
                    out[i][c] *= factor[i];
            }
        }
#pragma unroll
        for (int i = 0; i < S::ROWS; ++i) {
            const float shift = softmax.shift(i);
#pragma unroll
            for (int j = 0; j < S::KEYS; ++j)
                shared.p[row_of(i)][j * 8 + lane_col] = softmax.weight(i, scores[i][j], scale, shift);
        }

        course::ptx::cp_async_wait<0>();
        __syncthreads();  // the tile of V is complete, p is written, and K is safe to overwrite
        copy_k(first + S::BN);
        if (masked) {
            set_apart_non_finite<S::BN, S::D, S::THREADS>(
                [&](int key, int col) { return &shared.v[key][col]; },
                [&](int key) {
#pragma unroll
                    for (int i = 0; i < S::ROWS; ++i) {
#pragma unroll
                        for (int c = 0; c < S::COLS; ++c) {
                            const float x = shared.v[key][c / 4 * 32 + lane_col * 4 + c % 4];
                            if (first + key < seen_by(i) && !is_finite(x)) out[i][c] += x;
                        }
                    }
                });
        }

        // out += p V
#pragma unroll 2
        for (int key = 0; key < S::BN; key += 4) {
            Pack p[S::ROWS];
#pragma unroll
            for (int i = 0; i < S::ROWS; ++i)
                p[i] = Pack::load(&shared.p[row_of(i)][key]);
#pragma unroll
            for (int n = 0; n < 4; ++n) {
#pragma unroll
                for (int c = 0; c < S::COLS; c += 4) {
                    const Pack v = Pack::load(&shared.v[key + n][c * 8 + lane_col * 4]);
#pragma unroll
                    for (int i = 0; i < S::ROWS; ++i) {
#pragma unroll
                        for (int m = 0; m < 4; ++m)
                            out[i][c + m] += p[i].value[n] * v.value[m];
                    }
                }
            }
        }
        __syncthreads();  // V is safe to overwrite
        copy_v(first + S::BN);
    }

#pragma unroll
    for (int i = 0; i < S::ROWS; ++i) {
        const float inverse = softmax.inverse_of_sum(i);
        const int row = tile.first + row_of(i);
        if (row >= tile.length_q) continue;
        float* const to = tile.out + static_cast<std::size_t>(row) * a.out.strides().row;
#pragma unroll
        for (int c = 0; c < S::COLS; c += 4) {
            Pack pack;
#pragma unroll
            for (int m = 0; m < 4; ++m)
                pack.value[m] = out[i][c + m] * inverse;
            write_pack<ALIGNED>(to, c * 8 + lane_col * 4, dim, pack);
        }
    }
}

template <int D>
using RegisterTileFor = std::conditional_t<D <= 64, RegisterTile<D, 8, 4, 2>, RegisterTile<D, 4, 4, 1>>;

// A block of S::THREADS threads for S::BM rows, with Q, K, V and p in shared memory. Unaligned rows
// of any head dimension take the tile of kMaxDim, to compile fewer kernels.
inline void launch_register_tiles(const Attention<float>& attention, cudaStream_t stream) {
    const auto run = [&](auto dim, auto aligned) {
        using S = RegisterTileFor<dim()>;
        launch_tiles<S::BM>(attention_register_tiles<S, aligned()>, S::THREADS, sizeof(RegisterTileMemory<S>),
                            attention, stream);
    };
    if (!rows_are_aligned(attention)) {
        run(std::integral_constant<int, kMaxDim>(), std::false_type());
    } else {
        with_dim<64, 128>(attention.q.extents().dim, [&](auto dim) { run(dim, std::true_type()); });
    }
}

}  // namespace day26
