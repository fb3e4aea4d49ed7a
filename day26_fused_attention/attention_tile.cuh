// Code that the tiled versions share and that other days teach: which rows a block computes, copies
// of tiles to shared memory (days 38 and 40), stores of the result, and values of V that are not
// finite.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstddef>

#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/ptx.cuh"
#include "common/device/warp.cuh"
#include "fused_attention.hpp"

namespace day26 {

inline constexpr float kInfinity = __builtin_huge_valf();
inline constexpr float kNan = __builtin_nanf("");
inline constexpr float kLog2E = 1.44269504f;  // exp(x) = exp2(x log2(e))

// --- Rows of a block -----------------------------------------------------------------------------

// The BM rows of a block, and the keys that they see. Grid (launch.cuh) explains the order of
// blocks.
template <class T>
struct RowTile {
    const T* q;  // first row of the head
    const T* k;
    const T* v;
    T* out;
    int first;    // row of the tile
    int keys;     // no row sees a key from here on
    int all_see;  // every row sees all keys before this one
    int length_q;
    int length_k;
    int diagonal;  // row i sees the keys before i + diagonal

    __device__ int seen_by(int row) const { return min(max(row + diagonal, 0), length_k); }
};

template <int BM, class T>
__device__ RowTile<T> row_tile(const Attention<T>& a, unsigned heads_at_once) {
    const Extents q = a.q.extents();
    const auto tiles = static_cast<unsigned>(course::ceil_div<std::size_t>(q.length, BM));
    const auto heads = static_cast<unsigned>(q.batch * q.heads);
    const unsigned group = blockIdx.x / (tiles * heads_at_once);
    const unsigned in_group = blockIdx.x % (tiles * heads_at_once);
    const unsigned heads_here = min(heads_at_once, heads - group * heads_at_once);
    const std::size_t head = group * heads_at_once + in_group % heads_here;
    const std::size_t first = static_cast<std::size_t>(tiles - 1 - in_group / heads_here) * BM;

    const std::size_t batch = head / q.heads;
    const std::size_t head_q = head % q.heads;
    const std::size_t head_kv = head_q / (q.heads / a.k.extents().heads);
    const std::size_t last = min(first + BM, q.length) - 1;
    RowTile<T> tile{a.q.head(batch, head_q),
                    a.k.head(batch, head_kv),
                    a.v.head(batch, head_kv),
                    a.out.head(batch, head_q),
                    static_cast<int>(first),
                    0,
                    0,
                    a.q.length(),
                    a.k.length(),
                    a.causal ? a.k.length() - a.q.length() + 1 : a.k.length()};
    tile.keys = tile.seen_by(static_cast<int>(last));
    tile.all_see = tile.seen_by(tile.first);
    return tile;
}

// --- Copies --------------------------------------------------------------------------------------

// How many of the N elements from column `col` on are in range.
template <int N>
__device__ int elements_left(int dim, int col) {
    return min(max(dim - col, 0), N);
}

// N, rounded up to a power of two.
template <int N>
inline constexpr int kPowerOfTwo = static_cast<int>(std::bit_ceil(static_cast<unsigned>(N)));

// Issues copies of the rows [first, first + ROWS) of a head, D elements each, 16 bytes at a time,
// to the addresses place(row, pack). Out-of-range rows (from `length` on) and elements (from `dim`
// on) are zero-filled and not read.
template <int ROWS, int D, int THREADS, bool ALIGNED, class T, class Place>
__device__ void copy_tile(const T* head, std::size_t stride, int first, int length, int dim, Place place) {
    constexpr int kPack = 16 / sizeof(T);
    constexpr int kPacks = D / kPack;              // in a row
    constexpr int kColumns = kPowerOfTwo<kPacks>;  // of threads
    constexpr int kStep = THREADS / kColumns;      // rows copied at a time
    static_assert(THREADS % kColumns == 0 && ROWS % kStep == 0,
                  "copy_tile: all threads copy the same number of packs");
    const int pack = static_cast<int>(threadIdx.x % kColumns);
    const int first_row = static_cast<int>(threadIdx.x / kColumns);
    if (kColumns != kPacks && pack >= kPacks) return;
    const int in_row = elements_left<kPack>(dim, pack * kPack);
    const T* from = head + static_cast<std::size_t>(first + first_row) * stride + pack * kPack;
#pragma unroll
    for (int row = first_row; row < first_row + ROWS; row += kStep) {
        const int count = first + row < length ? in_row : 0;
        T* const to = place(row, pack);
        if constexpr (ALIGNED) {
            course::ptx::cp_async_16(to, from, static_cast<unsigned>(count) * sizeof(T));
        } else {
            course::Pack<T, kPack> elements{};
#pragma unroll
            for (int j = 0; j < kPack; ++j) {
                if (j < count) elements.value[j] = from[j];
            }
            elements.store(to);
        }
        from += kStep * stride;
    }
}

// Stores N elements of a row of the result, from column `col` on, except those from `dim` on.
template <bool ALIGNED, class T, int N>
__device__ void write_pack(T* row, int col, int dim, const course::Pack<T, N>& pack) {
    if (ALIGNED && col + N <= dim) {
        pack.store(row + col);
        return;
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
        if (col + j < dim) row[col + j] = pack.value[j];
    }
}

// --- Values that are not finite ------------------------------------------------------------------

__device__ inline bool is_finite(float x) {
    return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
}

// A row has p = 0 for a key that it does not see, but 0 times NaN is NaN. So if a tile of V that is
// not visible to all rows contains values that are not finite, every thread calls add(key) for each
// key, which adds those values to its results of rows that see the key. Then the values are set to
// 0. value(key, col) is the address of an element of the tile. All threads of the block call this
// function.
template <int BN, int D, int THREADS, class Value, class Add>
__device__ void set_apart_non_finite(Value value, Add add) {
    const auto thread = static_cast<int>(threadIdx.x);
    bool found = false;
    for (int i = thread; i < BN * D; i += THREADS)
        found |= !is_finite(static_cast<float>(*value(i / D, i % D)));
    if (!__syncthreads_or(found)) return;
#pragma unroll 1
    for (int key = 0; key < BN; ++key)
        add(key);
    __syncthreads();
    for (int i = thread; i < BN * D; i += THREADS) {
        auto* const x = value(i / D, i % D);
        if (!is_finite(static_cast<float>(*x))) *x = 0.0f;
    }
    __syncthreads();
}

}  // namespace day26
