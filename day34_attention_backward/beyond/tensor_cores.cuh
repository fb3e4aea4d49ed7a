// Day 34, beyond: the version tensor_cores, for FP16 and BF16: five products by mma.sync (day 40),
// summed in FP32.
//
//   a block   64 keys, and all tiles of 32 rows of Q that see them; two stages of Q and d_out
//   a warp    16 keys: dK and dV stay in its registers
//
// A warp computes S^T = K Q^T with its keys as rows. Lane 4 g + t then has columns 2 t, 2 t + 1 of
// every eight in row g and g + 8: rounded to pairs, P^T and dS^T are the left operands of dV and
// dK. Only dQ = dS K sums over all keys of the block, so dS goes through shared memory.
#pragma once

#include <cuda_runtime.h>

#include "attention_backward.hpp"
#include "common/device/half_fragment.cuh"
#include "common/device/ptx.cuh"
#include "launch.cuh"
#include "parts.cuh"

namespace day34 {

using course::mma;
using course::pair;

constexpr int kWarps = 4;
constexpr int kWarpThreads = kWarps * 32;
constexpr int kWarpKeys = kWarps * 16;  // of a block
constexpr int kWarpRows = 32;           // of Q in a tile

// ROWS x D elements in packs of 8, swizzled: the same pack of 8 consecutive rows is in different
// banks.
template <class T, int ROWS, int D>
struct Swizzled {
    T rows[ROWS][D];

    __device__ T* pack(int row, int index) { return &rows[row][(index ^ row % 8) * 8]; }
};

template <class T, int D>
struct WarpMemory {
    Swizzled<T, kWarpKeys, D> k;
    Swizzled<T, kWarpKeys, D> v;
    Swizzled<T, kWarpRows, D> q[2];
    Swizzled<T, kWarpRows, D> d_out[2];
    // dS^T, [key][row]. 32 of the 64 elements of a row are used: the swizzle permutes eight packs.
    Swizzled<T, kWarpKeys, 64> ds;
};

// Starts to copy rows of a head. Rows out of range and columns from dim on are zero-filled.
template <class T, int ROWS, int D>
__device__ void copy_rows(Swizzled<T, ROWS, D>& to, const HeadsView<const T>& view, std::size_t head,
                          int first) {
    for (int i = static_cast<int>(threadIdx.x); i < ROWS * D / 8; i += kWarpThreads) {
        const int row = i / (D / 8);
        const int pack = i % (D / 8);
        const bool inside = first + row < view.length() && pack * 8 < view.dim();
        const T* const from =
            row_of(view, head, inside ? static_cast<std::size_t>(first + row) : 0) + (inside ? pack * 8 : 0);
        course::ptx::cp_async_16(to.pack(row, pack), from, inside ? 16 : 0);
    }
}

// out = keys rows^T: a warp's 16 keys from `key` on x 32 rows.
template <class T, int D>
__device__ void multiply_rows(Swizzled<T, kWarpKeys, D>& keys, int key, Swizzled<T, kWarpRows, D>& rows,
                              float (&out)[kWarpRows / 8][4]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
// If the loop were fully unrolled, the compiler would move the loads of all steps to the front,
// which takes too many registers.
#pragma unroll 2
    for (int c = 0; c < D / 8; c += 2) {
        unsigned a[4];
        course::ptx::ldmatrix_x4(a, keys.pack(key + lane % 16, c + lane / 16));
#pragma unroll
        for (int j = 0; j < kWarpRows / 8; j += 2) {
            unsigned b[4];  // of 16 rows
            course::ptx::ldmatrix_x4(b, rows.pack(j * 8 + lane / 16 * 8 + lane % 8, c + lane / 8 % 2));
            mma(out[j], a, {b[0], b[1]}, T{});
            mma(out[j + 1], a, {b[2], b[3]}, T{});
        }
    }
}

// sums += left rows: 16 keys x D. The left operand is P^T or dS^T.
template <class T, int D>
__device__ void add_rows(const unsigned (&left)[kWarpRows / 16][4], Swizzled<T, kWarpRows, D>& rows,
                         float (&sums)[D / 8][4]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kWarpRows / 16; ++i) {
#pragma unroll
        for (int c = 0; c < D / 8; c += 2) {
            unsigned b[4];  // of 16 columns
            course::ptx::ldmatrix_x4_trans(b, rows.pack(i * 16 + lane % 16, c + lane / 16));
            mma(sums[c], left[i], {b[0], b[1]}, T{});
            mma(sums[c + 1], left[i], {b[2], b[3]}, T{});
        }
    }
}

// Adds dS K to the sums of dQ: 32 rows x this warp's quarter of the columns.
template <class T, int D>
__device__ void add_queries(WarpMemory<T, D>& memory, float* sums) {
    constexpr int ACROSS = D / 8 / kWarps;  // products side by side
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int first = static_cast<int>(threadIdx.x) / 32 * ACROSS;  // pack
    float dq[2][ACROSS][4] = {};
#pragma unroll
    for (int key = 0; key < kWarpKeys; key += 16) {
        unsigned a[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i)
            course::ptx::ldmatrix_x4_trans(
                a[i], memory.ds.pack(key + lane / 16 * 8 + lane % 8, i * 2 + lane / 8 % 2));
#pragma unroll
        for (int c = 0; c < ACROSS; c += 2) {
            unsigned b[4];
            course::ptx::ldmatrix_x4_trans(b, memory.k.pack(key + lane % 16, first + c + lane / 16));
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                mma(dq[i][c], a[i], {b[0], b[1]}, T{});
                mma(dq[i][c + 1], a[i], {b[2], b[3]}, T{});
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int c = 0; c < ACROSS; ++c) {
#pragma unroll
            for (int n = 0; n < 4; ++n)
                atomicAdd(&sums[(i * 16 + lane / 4 + n / 2 * 8) * D + (first + c) * 8 + lane % 4 * 2 + n % 2],
                          dq[i][c][n]);
        }
    }
}

// Idea: tensor cores. The operands of all products are 16-bit tiles in shared memory, or pairs in
// registers.
// Cost removed: FP32 multiply-adds, and half of the bytes.
// Still limits it: L2 (counters: 70 % busy, shared memory 37 %), through which dQ is added one
// float at a time and spilled registers may pass: 80 million local loads of warps. And a warp with
// 16 keys uses each fragment that it loads for mma.sync only once.
//
// `dq` is 0 when the kernel starts: FP32, [head][terms.padded][D].
template <class T, int D>
__global__ void __launch_bounds__(kWarpThreads, 2)
    tensor_cores_gradients(const Gradient<T> a, const RowTerms terms, float* dq) {
    extern __shared__ float4 bytes[];
    auto& memory = *reinterpret_cast<WarpMemory<T, D>*>(bytes);
    const auto in_head = static_cast<unsigned>((a.k.length() + kWarpKeys - 1) / kWarpKeys);
    const std::size_t head = blockIdx.x / in_head;
    const int key = static_cast<int>(blockIdx.x % in_head) * kWarpKeys;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_key = static_cast<int>(threadIdx.x) / 32 * 16;  // within the block
    const int diagonal = a.causal ? a.k.length() - a.q.length() : 1 << 30;
    const int begin = max(0, key - diagonal) / kWarpRows;
    const int end = (a.q.length() + kWarpRows - 1) / kWarpRows;
    const float scale = a.scale * kLog2E;
    const auto copy = [&](int tile) {
        copy_rows(memory.q[tile % 2], a.q, head, tile * kWarpRows);
        copy_rows(memory.d_out[tile % 2], a.d_out, head, tile * kWarpRows);
        course::ptx::cp_async_commit();
    };
    copy_rows(memory.k, a.k, head, key);
    copy_rows(memory.v, a.v, head, key);
    if (begin < end) copy(begin);

    float dk[D / 8][4] = {};
    float dv[D / 8][4] = {};
    for (int tile = begin; tile < end; ++tile) {
        course::ptx::cp_async_wait<0>();
        __syncthreads();  // the tile is complete, and the previous stage safe to overwrite
        if (tile + 1 < end) copy(tile + 1);
        const std::size_t row = head * terms.padded + static_cast<std::size_t>(tile * kWarpRows);
        float scores[kWarpRows / 8][4] = {};
        float dp[kWarpRows / 8][4] = {};
        multiply_rows(memory.k, warp_key, memory.q[tile % 2], scores);
        multiply_rows(memory.v, warp_key, memory.d_out[tile % 2], dp);

        unsigned p[kWarpRows / 16][4];
        unsigned ds[kWarpRows / 16][4];
#pragma unroll
        for (int j = 0; j < kWarpRows / 8; ++j) {
            const int col = j * 8 + lane % 4 * 2;  // row of Q within the tile
            const float2 lse = *reinterpret_cast<const float2*>(terms.lse + row + col);
            const float2 d = *reinterpret_cast<const float2*>(terms.d + row + col);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int own = key + warp_key + lane / 4 + h * 8;
                const int first = own < a.k.length() ? own - diagonal - tile * kWarpRows : kWarpRows;
                float* const two = &scores[j][h * 2];
                two[0] = col >= first ? course::ptx::exp2_approx(fmaf(two[0], scale, -lse.x)) : 0.0f;
                two[1] = col + 1 >= first ? course::ptx::exp2_approx(fmaf(two[1], scale, -lse.y)) : 0.0f;
                p[j / 2][j % 2 * 2 + h] = pair<T>(two[0], two[1]);
                const unsigned both =
                    pair<T>(two[0] * (dp[j][h * 2] - d.x), two[1] * (dp[j][h * 2 + 1] - d.y));
                ds[j / 2][j % 2 * 2 + h] = both;
                *reinterpret_cast<unsigned*>(memory.ds.pack(warp_key + lane / 4 + h * 8, j) + lane % 4 * 2) =
                    both;
            }
        }
        add_rows(p, memory.d_out[tile % 2], dv);
        add_rows(ds, memory.q[tile % 2], dk);
        __syncthreads();  // dS is complete
        add_queries(memory, dq + row * D);
    }
    course::ptx::cp_async_wait<0>();

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int own = key + warp_key + lane / 4 + h * 8;
        if (own >= a.k.length()) continue;
        T* const to_k = row_of(a.dk, head, static_cast<std::size_t>(own)) + lane % 4 * 2;
        T* const to_v = row_of(a.dv, head, static_cast<std::size_t>(own)) + lane % 4 * 2;
#pragma unroll
        for (int c = 0; c < D / 8; ++c) {
            if (c * 8 >= a.k.dim()) continue;
            *reinterpret_cast<unsigned*>(to_k + c * 8) =
                pair<T>(dk[c][h * 2] * a.scale, dk[c][h * 2 + 1] * a.scale);
            *reinterpret_cast<unsigned*>(to_v + c * 8) = pair<T>(dv[c][h * 2], dv[c][h * 2 + 1]);
        }
    }
}

template <class T, int D>
void launch_tensor_cores_gradients(const Gradient<T>& a, const RowTerms& terms, float* dq,
                                   cudaStream_t stream) {
    const Extents k = a.k.extents();
    const unsigned blocks =
        course::blocks_for(k.batch * k.heads * course::ceil_div<std::size_t>(k.length, kWarpKeys), 1);
    course::launch(tensor_cores_gradients<T, D>, {blocks, kWarpThreads, sizeof(WarpMemory<T, D>), stream}, a,
                   terms, dq);
}

// dQ = scale times its sums, rounded; a thread per pair.
template <class T, int D>
__global__ void round_queries(const Gradient<T> a, const RowTerms terms, const float* sums,
                              std::size_t pairs) {
    const std::size_t index = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index >= pairs) return;
    const Extents q = a.q.extents();
    const std::size_t col = index % (q.dim / 2) * 2;
    const std::size_t row = index / (q.dim / 2) % q.length;
    const std::size_t head = index / (q.dim / 2) / q.length;
    const float* const from = sums + (head * terms.padded + row) * D + col;
    *reinterpret_cast<unsigned*>(row_of(a.dq, head, row) + col) =
        pair<T>(from[0] * a.scale, from[1] * a.scale);
}

template <class T, int D>
void launch_round_queries(const Gradient<T>& a, const RowTerms& terms, const float* sums,
                          cudaStream_t stream) {
    const Extents q = a.q.extents();
    const std::size_t pairs = q.batch * q.heads * q.length * (q.dim / 2);
    round_queries<T, D>
        <<<course::blocks_for(pairs, kFinishThreads), kFinishThreads, 0, stream>>>(a, terms, sums, pairs);
}

}  // namespace day34
