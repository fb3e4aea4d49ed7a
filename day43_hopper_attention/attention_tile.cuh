// The operations on a tile that all versions of day 43 share: load it by TMA, multiply it by wgmma,
// round its weights. Its rows, its softmax and its result are in common/tile/attention_rows.cuh.
//
// A tile: 64 rows of Q for each consumer warpgroup, and KEYS keys, 128 in most versions. A
// warpgroup has 64 x KEYS scores and 64 x D sums of the result in registers. Columns from dim to D
// (64 or 128) are zero-filled.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/half_fragment.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/tile/attention_rows.cuh"
#include "common/tile/warpgroup.cuh"

namespace day43 {

namespace ptx = course::ptx;

using course::clear;
using course::hold;
using course::kWarpgroup;
using course::pair;
using course::release;
using course::attention::kRows;
using course::attention::OnlineSoftmax;
using course::attention::Problem;
using course::attention::row_tile;
using course::attention::RowTile;
using course::attention::store_rows;
using course::attention::weigh_tile;

constexpr float kInfinity = __builtin_huge_valf();
constexpr int kKeys = 128;  // of a tile of K and V, but in beyond/short.cuh

// The tensor maps of Q, K and V: each head of each batch is a matrix of its own. Boxes have 64
// columns, and 64 rows of Q or 128 keys. Rows out of range are zero-filled, never another head's.
struct Maps {
    CUtensorMap q;
    CUtensorMap k;
    CUtensorMap v;
};

// --- Loads ---------------------------------------------------------------------------------------

// ROWS rows of a head in shared memory: boxes of 64 columns, rows of 128 bytes, swizzled.
template <class T, int D, int ROWS>
struct alignas(1024) Box {
    T element[D / 64][ROWS * 64];
};
template <class T, int D>
using Keys = Box<T, D, kKeys>;

// One thread issues the loads of ROWS rows from `row` on. The barrier counts their bytes.
template <class T, int D, int ROWS>
__device__ void load(Box<T, D, ROWS>& to, const CUtensorMap& map, int row, int head, int batch,
                     ptx::MBarrier* full) {
    for (int c = 0; c < D / 64; ++c)
        ptx::tma_load(to.element[c], &map, c * 64, row, head, batch, full);
}

// --- Products ------------------------------------------------------------------------------------

// Issues scores = Q K^T, 64 rows x 2 COUNT keys. Both operands are K-major (day 31): a wgmma takes
// 16 columns, 32 bytes of a row. The first one sets the scores, so they do not have to be zeroed.
template <class T, int D, int COUNT>
__device__ void multiply_keys(const Box<T, D, kRows>& q, const Box<T, D, 2 * COUNT>& k,
                              float (&scores)[COUNT]) {
    const std::uint64_t a = ptx::descriptor_k_major(q.element[0]);
    const std::uint64_t b = ptx::descriptor_k_major(k.element[0]);
    ptx::wgmma_set<T, false>(scores, a, b);
#pragma unroll
    for (int c = 16; c < D; c += 16)
        ptx::wgmma<T, false>(scores, ptx::advanced(a, c / 64 * sizeof(q.element[0]) + c % 64 * 2),
                             ptx::advanced(b, c / 64 * sizeof(k.element[0]) + c % 64 * 2));
}

// Issues out += p V. The weights are the left operand, from registers; V is row-major, as it was
// loaded. A wgmma takes 16 keys, 2048 bytes of each box.
template <class T, int D, int COUNT>
__device__ void multiply_values(const unsigned (&p)[COUNT][4], const Box<T, D, COUNT * 16>& v,
                                float (&out)[D / 2]) {
    const std::uint64_t b = ptx::descriptor_mn_major(v.element[0], sizeof(v.element[0]));
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        ptx::wgmma<T, true>(out, p[i], ptx::advanced(b, i * 16 * 128));
}

// The registers of scores, rounded to pairs, have the layout of a left operand. So p stays in
// registers.
template <class T, int COUNT>
__device__ void round_weights(const float (&weights)[COUNT], unsigned (&p)[COUNT / 8][4]) {
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i)
        p[i / 4][i % 4] = pair<T>(weights[2 * i], weights[2 * i + 1]);
}

}  // namespace day43
