// Day 44: softmax(scale Q K^T) V with 8-bit operands, E4M3.
//
//   kernel            what is new                                       what limits it
//   transpose_values  V^T, with its keys in the order of the weights    memory
//   in_turn           8-bit wgmma, 64 rows x 128 keys                   loads, products, softmax take turns
//
// Day 43 computes the same with 16 bits; day 42 introduces the 8-bit wgmma.
// common/tile/attention_rows.cuh has what does not depend on the type of the operands (rows of a
// tile, softmax, storing), any_scale.cuh what makes scales of any value possible. beyond/ overlaps
// the products with the softmax.
//
//   ./course run day44                               both versions, verified and timed
//   ./course run day44 --size 2x16x8192x128          batch x heads x tokens x head dimension
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "any_scale.cuh"
#include "common/device/ptx_hopper.cuh"
#include "common/tile/attention_rows.cuh"
#include "common/tile/warpgroup.cuh"
#include "eight_bit_attention.hpp"

namespace day44 {

namespace ptx = course::ptx;

using course::clear;
using course::hold;
using course::kWarpgroup;
using course::attention::kRows;
using course::attention::row_tile;
using course::attention::RowTile;
using course::attention::store_rows;
using course::attention::weigh_tile;

constexpr int D = 128;  // columns; those from dim on are zero-filled
// A key has a place in V^T, which is not its number (transpose_values).
constexpr int kPlaces = 128;  // of a box of V^T: a row of 128 bytes

// --- V transposed --------------------------------------------------------------------------------

// 8-bit operands of wgmma must be K-major (day 31): the elements that are summed over must be
// adjacent. The second product sums over keys, so the bytes of a column of V must be adjacent.
//
// In which order? The weights are the left operand, in registers. Of 32 keys lane 4 g + t holds, as
// sums, keys 8 j + 2 t and 8 j + 2 t + 1 for j = 0 to 3; as a left operand it should hold keys 16 i
// + 4 t to 16 i + 4 t + 3 for i = 0 and 1. Instead of exchanging weights between lanes we rename
// the keys, which may be added up in any order, if it is the same in p and in V. Place 16 i + 4 t +
// b holds key 16 i + 2 t + {0, 1, 8, 9}[b].
//
// A block transposes 128 keys. A thread reads four columns of the four keys of a word of places,
// and transposes 4 x 4 bytes in registers.
constexpr int kTransposers = 256;

__global__ void __launch_bounds__(kTransposers)
    transpose_values(HeadsView<const E4m3> v, unsigned char* out, std::size_t padded) {
    __shared__ unsigned words[4][32][33];  // column 4 c + e, word w of places: [e][c][w]
    const int heads = static_cast<int>(v.extents().heads);
    const int head = static_cast<int>(blockIdx.y);
    const auto* const rows = reinterpret_cast<const unsigned char*>(v.head(head / heads, head % heads));
    const int first = static_cast<int>(blockIdx.x) * kPlaces;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    for (int w = warp; w < 32; w += kTransposers / 32) {
        const int key = first + w / 4 * 16 + w % 4 * 2;
        unsigned of_key[4];  // bytes: columns 4 lane to 4 lane + 3
        for (int b = 0; b < 4; ++b) {
            const int row = key + b / 2 * 8 + b % 2;
            const bool inside = row < v.length() && lane * 4 < v.dim();
            of_key[b] = inside ? *reinterpret_cast<const unsigned*>(
                                     rows + static_cast<std::size_t>(row) * v.strides().row + lane * 4)
                               : 0;
        }
        const unsigned upper[2] = {__byte_perm(of_key[0], of_key[1], 0x5140),   // columns 0 and 1
                                   __byte_perm(of_key[0], of_key[1], 0x7362)};  // columns 2 and 3
        const unsigned lower[2] = {__byte_perm(of_key[2], of_key[3], 0x5140),
                                   __byte_perm(of_key[2], of_key[3], 0x7362)};
        for (int e = 0; e < 4; ++e)
            words[e][lane][w] = __byte_perm(upper[e / 2], lower[e / 2], e % 2 == 0 ? 0x5410 : 0x7632);
    }
    __syncthreads();
    for (int column = warp; column < v.dim(); column += kTransposers / 32) {
        unsigned char* const to = out + (static_cast<std::size_t>(head) * v.dim() + column) * padded + first;
        *reinterpret_cast<unsigned*>(to + lane * 4) = words[column % 4][column / 4][lane];
    }
}

// out: `padded` bytes, a multiple of kPlaces, for each column of each head of V.
inline void launch_transpose_values(const HeadsView<const E4m3>& v, unsigned char* out, std::size_t padded,
                                    cudaStream_t stream) {
    const auto heads = static_cast<unsigned>(v.extents().batch * v.extents().heads);
    const dim3 blocks(static_cast<unsigned>(padded / kPlaces), heads);
    transpose_values<<<blocks, kTransposers, 0, stream>>>(v, out, padded);
}

// --- Products ------------------------------------------------------------------------------------

// ROWS rows of 128 bytes, swizzled by TMA.
template <int ROWS>
struct alignas(1024) Box {
    E4m3 element[ROWS * 128];
};

// Issues scores = Q K^T, 64 rows x 2 COUNT keys. A wgmma takes 32 columns.
template <int COUNT>
__device__ void multiply_keys(const Box<kRows>& q, const Box<2 * COUNT>& k, float (&scores)[COUNT]) {
    const std::uint64_t a = ptx::descriptor_k_major(q.element);
    const std::uint64_t b = ptx::descriptor_k_major(k.element);
    ptx::wgmma_set<E4m3, false>(scores, a, b);
#pragma unroll
    for (int c = 32; c < D; c += 32)
        ptx::wgmma<E4m3, false>(scores, ptx::advanced(a, c), ptx::advanced(b, c));
}

// Issues out += p V, 32 places of keys at a time.
template <int COUNT>
__device__ void multiply_values(const unsigned (&p)[COUNT][4], const Box<D>& v, float (&out)[D / 2]) {
    const std::uint64_t b = ptx::descriptor_k_major(v.element);
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        ptx::wgmma<E4m3, false>(out, p[i], ptx::advanced(b, i * 32));
}

__device__ inline unsigned two_bytes(float first, float second) {
    return __nv_cvt_float2_to_fp8x2({first, second}, __NV_SATFINITE, __NV_E4M3);
}

// Register 2 i + h of 32 keys: places 16 i + 4 t to 16 i + 4 t + 3 of row g + 8 h.
template <int COUNT>
__device__ void round_weights(const float (&weights)[COUNT], unsigned (&p)[COUNT / 16][4]) {
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) {
        const int first = i / 4 * 16 + i % 4 / 2 * 8 + i % 2 * 2;
        p[i / 4][i % 4] = two_bytes(weights[first], weights[first + 1]) |
                          two_bytes(weights[first + 4], weights[first + 5]) << 16;
    }
}

// --- Load, multiply, weigh, multiply -------------------------------------------------------------

// The largest weight is 2^4. A score may exceed the maximum by 4 (in powers of two) before the sums
// are rescaled, so weights stay below 2^8, and the largest E4M3 number is 448. Its smallest number
// above 0 is 2^-9: weights from 2^-13 of the largest on do not vanish.
using Softmax = course::attention::OnlineSoftmax<4, 4>;

struct Maps {
    CUtensorMap q;
    CUtensorMap k;
    CUtensorMap v;  // transposed: rows are columns of V, along them are places of keys
};

struct Problem {
    course::attention::Problem<Result> rows;  // without its scale
    double scale;                             // of all scores, times log2(e)
    const float* q_scale;
    const float* k_scale;
    const float* v_scale;

    // The scale factors of a tile's scores and of its result. In double, the product of three
    // floats neither overflows nor underflows.
    __device__ float of_scores(const RowTile& tile) const {
        const int heads = static_cast<int>(rows.out.extents().heads);
        const double of_q = q_scale[tile.batch * heads + tile.head];
        return static_cast<float>(scale * of_q * k_scale[tile.batch * rows.heads_kv + tile.head_kv]);
    }
    __device__ float of_result(const RowTile& tile) const {
        return v_scale[tile.batch * rows.heads_kv + tile.head_kv];
    }
};

// --- Loads, products and softmax in turn ---------------------------------------------------------

struct OneStage {
    Box<kRows> q;
    Box<kPlaces> k;
    Box<D> v;
    ptx::MBarrier full;
};

// Idea: 8-bit operands. A wgmma multiplies twice as many in the same time, and tiles need half as
// many bytes.
// Cost removed: half of the products' time, half of the loads.
// Still limits it: loads, products and softmax take turns, and the softmax takes as long as before.
__global__ void __launch_bounds__(kWarpgroup)
    in_turn(const __grid_constant__ Maps maps, const Problem problem) {
    constexpr int KEYS = kPlaces;
    extern __shared__ __align__(1024) unsigned char memory[];
    auto& [q, k, v, full] = *reinterpret_cast<OneStage*>(memory);
    const RowTile tile = row_tile(problem.rows, static_cast<int>(blockIdx.x), kRows, KEYS);
    const float of_scores = problem.of_scores(tile);
    const float factor = positive_factor(of_scores);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();

    Softmax softmax;
    float scores[KEYS / 2];
    float out[D / 2];
    unsigned p[KEYS / 32][4];
    clear(out);
    unsigned parity = 0;
    for (int step = tile.steps - 1; step >= 0; --step, parity ^= 1) {
        if (threadIdx.x == 0) {
            const bool first = step == tile.steps - 1;
            ptx::mbarrier_arrive_expect(&full, (first ? sizeof(q) : 0) + sizeof(k) + sizeof(v));
            if (first) ptx::tma_load(q.element, &maps.q, 0, tile.first, tile.head, tile.batch, &full);
            ptx::tma_load(k.element, &maps.k, 0, step * KEYS, tile.head_kv, tile.batch, &full);
            ptx::tma_load(v.element, &maps.v, step * KEYS, 0, tile.head_kv, tile.batch, &full);
        }
        ptx::mbarrier_wait(&full, parity);
        if (step == tile.steps - 1) correct_queries(q, of_scores, 1);
        ptx::wgmma_fence();
        multiply_keys(q, k, scores);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        hold(scores);

        weigh_tile(problem.rows, softmax, scores, tile.first, step, factor);
        softmax.rescale(out);
        round_weights(scores, p);

        ptx::wgmma_fence();
        multiply_values(p, v, out);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        hold(out);
        __syncthreads();  // K and V are safe to overwrite
    }
    const float of_result = spare_small_factor(out, problem.of_result(tile));
    store_rows<Result, D>(problem.rows, tile, tile.first, softmax, out, of_result);
}

// tiles: blocks of kRows rows in all heads of all batches.
inline void launch_in_turn(const Maps& maps, const Problem& problem, unsigned tiles, cudaStream_t stream) {
    // Q, K and V of a step are 40 KB: less than 48, above which a kernel must opt in.
    in_turn<<<tiles, kWarpgroup, sizeof(OneStage), stream>>>(maps, problem);
}

}  // namespace day44
