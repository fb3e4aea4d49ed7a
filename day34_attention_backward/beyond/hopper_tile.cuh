// Day 34, beyond: the operations of hopper.cuh's kernel on a tile: shared memory, loads, products,
// weights and their gradients, stores.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/half_fragment.cuh"
#include "common/device/ptx.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/tile/warpgroup.cuh"
#include "parts.cuh"

namespace day34 {

namespace ptx = course::ptx;

using course::both_of;
using course::clear;
using course::hold;
using course::kWarpgroup;
using course::pair;
using course::release;
using course::RingPosition;

constexpr int kConsumers = 2;
constexpr int kHopperThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kKeys = 64 * kConsumers;  // of a block
constexpr int kStagesQ = 3;             // of Q: the scores of the next tile are computed early
constexpr int kStagesDOut = 2;          // of d_out
constexpr int kPart = 64 * 64;          // of dQ: a consumer's part of a tile

// Rows of Q in a tile. A head dimension of 64 leaves registers for more rows.
template <int D>
constexpr int kRows = D == 64 ? 128 : 64;

// The tensor map of a tensor: each head of each batch is a matrix of its own. Rows out of range are
// zero-filled.
struct Maps {
    CUtensorMap q;      // boxes of kRows rows, 64 columns
    CUtensorMap d_out;  // as q
    CUtensorMap k;      // boxes of kKeys keys, 64 columns
    CUtensorMap v;      // as k
};

template <class T>
struct Problem {
    HeadsView<T> dk;
    HeadsView<T> dv;
    RowTerms terms;
    float* dq;       // [head][tile of rows][consumer][kPart], in the order of their registers
    unsigned* done;  // [head][tile of rows]: tiles of keys that have been added; ordered
    unsigned* ticket;
    int row_tiles;
    int key_tiles;
    int diagonal;  // row i sees the keys up to i + diagonal
    float scale;
};

// ROWS rows in shared memory: boxes of 64 columns, rows of 128 bytes, swizzled.
template <class T, int COLUMNS, int ROWS>
struct alignas(1024) Box {
    T element[COLUMNS / 64][ROWS * 64];
};

template <class T, int D>
struct HopperMemory {
    Box<T, D, kKeys> k;
    Box<T, D, kKeys> v;
    Box<T, D, kRows<D>> q[kStagesQ];
    Box<T, D, kRows<D>> d_out[kStagesDOut];
    Box<T, kKeys, kRows<D>> ds[2];
    float4 dq[kConsumers][kPart / 4];
    float lse[kStagesQ][kRows<D>];
    float d[kStagesDOut][kRows<D>];
    ptx::MBarrier keys_full;
    ptx::MBarrier q_full[kStagesQ];  // Q and lse
    ptx::MBarrier q_empty[kStagesQ];
    ptx::MBarrier d_out_full[kStagesDOut];  // d_out and d
    ptx::MBarrier d_out_empty[kStagesDOut];
    ptx::MBarrier dq_full;
    ptx::MBarrier dq_empty;
    unsigned number;  // of the block
};

template <class T, int D>
__device__ void init_barriers(HopperMemory<T, D>& memory) {
    ptx::mbarrier_init(&memory.keys_full, 1);
    ptx::mbarrier_init(&memory.dq_full, kConsumers * kWarpgroup);
    ptx::mbarrier_init(&memory.dq_empty, 1);
    for (int stage = 0; stage < kStagesQ; ++stage) {
        ptx::mbarrier_init(&memory.q_full[stage], 1);
        ptx::mbarrier_init(&memory.q_empty[stage], kConsumers);
    }
    for (int stage = 0; stage < kStagesDOut; ++stage) {
        ptx::mbarrier_init(&memory.d_out_full[stage], 1);
        ptx::mbarrier_init(&memory.d_out_empty[stage], kConsumers);
    }
    ptx::fence_mbarrier_init();
}

template <class T, int D, int ROWS>
__device__ void load(Box<T, D, ROWS>& to, const CUtensorMap& map, int row, int head, int batch,
                     ptx::MBarrier* full) {
    for (int c = 0; c < D / 64; ++c)
        ptx::tma_load(to.element[c], &map, c * 64, row, head, batch, full);
}

// Keys of a block, and the first tile of rows that sees them.
struct KeyTile {
    int tile;
    int first;  // key
    int begin;  // tile of rows
    std::size_t head;
};

// With a causal mask, most rows see the first keys, so their blocks start first, and the blocks
// that end last are short. ORDERED: the last keys come first, see write_queries.
template <class T, int D, bool ORDERED>
__device__ KeyTile key_tile(const Problem<T>& problem, unsigned number) {
    KeyTile keys{};
    keys.tile = static_cast<int>(number % static_cast<unsigned>(problem.key_tiles));
    if (ORDERED) keys.tile = problem.key_tiles - 1 - keys.tile;
    keys.first = keys.tile * kKeys;
    keys.begin = max(0, keys.first - problem.diagonal) / kRows<D>;
    keys.head = number / static_cast<unsigned>(problem.key_tiles);
    return keys;
}

// --- Products ------------------------------------------------------------------------------------

// Issues out = keys rows^T: 64 keys of a consumer x ROWS rows of Q or d_out.
template <class T, int D, int ROWS>
__device__ void multiply_rows(const Box<T, D, kKeys>& keys, int group, const Box<T, D, ROWS>& rows,
                              float (&out)[ROWS / 2]) {
    const std::uint64_t a = ptx::descriptor_k_major(keys.element[0] + group * 64 * 64);
    const std::uint64_t b = ptx::descriptor_k_major(rows.element[0]);
    ptx::wgmma_set<T, false>(out, a, b);
#pragma unroll
    for (int c = 16; c < D; c += 16)
        ptx::wgmma<T, false>(out, ptx::advanced(a, c / 64 * sizeof(keys.element[0]) + c % 64 * 2),
                             ptx::advanced(b, c / 64 * sizeof(rows.element[0]) + c % 64 * 2));
}

// Issues sums += left rows: 64 keys x D. The left operand is P^T or dS^T, in registers.
template <class T, int D, int ROWS>
__device__ void add_rows(const unsigned (&left)[ROWS / 16][4], const Box<T, D, ROWS>& rows,
                         float (&sums)[D / 2]) {
    const std::uint64_t b = ptx::descriptor_mn_major(rows.element[0], sizeof(rows.element[0]));
#pragma unroll
    for (int row = 0; row < ROWS; row += 16)
        ptx::wgmma<T, true>(sums, left[row / 16], ptx::advanced(b, row * 128));
}

// Issues dq = dS K, a consumer's part: 64 columns of 64 rows, or 64 rows of 64 columns.
template <class T, int D, int ROWS>
__device__ void multiply_keys(const Box<T, kKeys, ROWS>& ds, const Box<T, D, kKeys>& keys, int group,
                              float (&dq)[32]) {
    const std::uint64_t a = ptx::descriptor_k_major(ds.element[0] + (D == 64 ? group * 64 * 64 : 0));
    const std::uint64_t b =
        ptx::descriptor_mn_major(keys.element[D == 64 ? 0 : group], sizeof(keys.element[0]));
    ptx::wgmma_set<T, true>(dq, a, b);
#pragma unroll
    for (int key = 16; key < kKeys; key += 16)
        ptx::wgmma<T, true>(dq, ptx::advanced(a, key / 64 * sizeof(ds.element[0]) + key % 64 * 2),
                            ptx::advanced(b, key * 128));
}

// --- Weights and their gradients -----------------------------------------------------------------
//
// Register 4 j + 2 h + i of lane 4 g + t in warp w: key 16 w + g + 8 h, row 8 j + 2 t + i of Q.

// Scores of rows that do not see a key become -Inf. A thread has scores of two keys: g is seen from
// row first_upper of the tile on, g + 8 from row first_lower on.
template <int COUNT>
__device__ void mask(float (&scores)[COUNT], int first_upper, int first_lower) {
    const int row = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int first = i / 2 % 2 == 0 ? first_upper : first_lower;
        scores[i] = i / 4 * 8 + row + i % 2 >= first ? scores[i] : -kInfinity;
    }
}

// Scores become weights, exp2(score scale - lse).
template <int COUNT>
__device__ void weigh(float (&scores)[COUNT], const float* lse, float scale) {
    const int row = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int j = 0; j < COUNT / 4; ++j) {
        const float2 shift = *reinterpret_cast<const float2*>(lse + j * 8 + row);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float* const two = &scores[4 * j + 2 * h];
            two[0] = ptx::exp2_approx(fmaf(two[0], scale, -shift.x));
            two[1] = ptx::exp2_approx(fmaf(two[1], scale, -shift.y));
        }
    }
}

// Rounds weights to pairs. Their registers then have the layout of a left operand.
template <class T, int COUNT>
__device__ void round_weights(const float (&weights)[COUNT], unsigned (&p)[COUNT / 8][4]) {
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i)
        p[i / 4][i % 4] = pair<T>(weights[2 * i], weights[2 * i + 1]);
}

// Masks and weighs the scores of a consumer's keys and a tile of rows.
template <class T, int D>
__device__ void weigh_tile(const Problem<T>& problem, const KeyTile& keys, int group, int tile,
                           const float* lse, float (&scores)[kRows<D> / 2]) {
    const int row = tile * kRows<D>;
    const int length_k = problem.dk.length();
    if (keys.first + kKeys > min(row + problem.diagonal + 1, length_k)) {
        const int thread = static_cast<int>(threadIdx.x);
        const int key = keys.first + group * 64 + thread / 32 % 4 * 16 + thread % 32 / 4;
        const auto first_row = [&](int of) { return of < length_k ? of - problem.diagonal - row : kRows<D>; };
        mask(scores, first_row(key), first_row(key + 8));
    }
    weigh(scores, lse, problem.scale * kLog2E);
}

// dS = P (dP - d), rounded.
template <class T, int COUNT>
__device__ void differentiate(const unsigned (&p)[COUNT / 8][4], const float (&dp)[COUNT], const float* d,
                              unsigned (&ds)[COUNT / 8][4]) {
    const int row = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int j = 0; j < COUNT / 4; ++j) {
        const float2 mean = *reinterpret_cast<const float2*>(d + j * 8 + row);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int i = 4 * j + 2 * h;
            const float2 weights = both_of<T>(p[j / 2][j % 2 * 2 + h]);
            ds[j / 2][j % 2 * 2 + h] =
                pair<T>(weights.x * (dp[i] - mean.x), weights.y * (dp[i + 1] - mean.y));
        }
    }
}

// Stores dS^T from registers as dS in shared memory: stmatrix transposes each 8 x 8 matrix.
template <class T, int ROWS>
__device__ void store_transposed(Box<T, kKeys, ROWS>& to, int group, const unsigned (&ds)[ROWS / 16][4]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int chunk = warp * 2 + lane / 8 % 2;  // of eight keys
#pragma unroll
    for (int j = 0; j < ROWS / 16; ++j) {
        const int row = j * 16 + lane / 16 * 8 + lane % 8;
        ptx::stmatrix_x4_trans(&to.element[group][row * 64 + (chunk ^ row % 8) * 8], ds[j]);
    }
}

// Stores dK or dV of 64 keys from `first` on to global memory.
template <class T, int D>
__device__ void store_keys(const HeadsView<T>& view, std::size_t head, int first, const float (&sums)[D / 2],
                           float factor) {
    const int thread = static_cast<int>(threadIdx.x);
    const int col = thread % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int key = first + thread / 32 % 4 * 16 + thread % 32 / 4 + h * 8;
        if (key >= view.length()) continue;
        T* const to = row_of(view, head, static_cast<std::size_t>(key)) + col;
#pragma unroll
        for (int j = 0; j < D / 8; ++j) {
            if (j * 8 >= view.dim()) continue;
            const float* const two = &sums[4 * j + 2 * h];
            *reinterpret_cast<unsigned*>(to + j * 8) = pair<T>(two[0] * factor, two[1] * factor);
        }
    }
}

}  // namespace day34
