// The packs of a row that starts at any address: what load_pack() loads and store_pack() stores.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/device/pack.cuh"

namespace day21 {

constexpr int kWidth = 4;  // floats of a pack: 16 bytes, the most that one instruction loads
using Pack = course::Pack<float, kWidth>;

// A pack is loaded from a multiple of 16 bytes, but a row may start at any multiple of 4. So a row
// has whole packs in its middle. The columns before and after them, at most six, are its edges.
// They are its last packs, with -Inf where there is no column:
//
//     a row of 13 columns, 8 bytes before a multiple of 16     0 1 | 2 3 4 5 | 6 7 8 9 | 10 11 12
//     its packs                                    2 3 4 5,   6 7 8 9,   0 1 10 11,   12 . . .
//
// So any row has as few packs as one that starts at a multiple of 16 bytes. A long row is cut into
// slices of `packs_of_slice` packs.
//
// kWhole: every row of the matrix and of the result consists of whole packs. Then the compiler
// omits the registers and instructions that edges need.
template <bool kWhole>
struct Slice {
    const float* in;  // the first whole pack of the slice
    float* out;       // its result
    int packs;        // of the slice
    int whole;        // whole packs of the slice; they come first
    int edges;        // columns of the row that are in no whole pack
    int head;         // those of them before the first whole pack
    int last_whole;   // whole packs from here on; negative: how many before

    std::ptrdiff_t begin;  // packs before the slice

    // Integer, signed: int is enough for most rows, and takes one register where 64 bits take two.
    template <class Integer>
    __device__ Slice(const float* in_row, float* out_row, Integer cols, int packs_of_slice, Integer index) {
        const auto past = static_cast<int>(reinterpret_cast<std::uintptr_t>(in_row) / sizeof(float) % kWidth);
        head = kWhole ? 0 : static_cast<int>(::min(cols, static_cast<Integer>((kWidth - past) % kWidth)));
        const Integer packs_of_row = (cols + kWidth - 1) / kWidth;
        const Integer whole_of_row = (cols - head) / kWidth;
        const Integer first = ::min(packs_of_row, index * packs_of_slice);
        packs = static_cast<int>(::min(static_cast<Integer>(packs_of_slice), packs_of_row - first));
        edges = static_cast<int>(cols - whole_of_row * kWidth);
        last_whole = static_cast<int>(::min(static_cast<Integer>(packs), whole_of_row - first));
        whole = kWhole ? packs : ::max(0, last_whole);
        begin = first;
        in = in_row + head + begin * kWidth;
        out = out_row + head + begin * kWidth;
    }

    // The whole row.
    __device__ Slice(const float* in_row, float* out_row, int cols) : Slice(in_row, out_row, cols, cols, 0) {}

    // Calls visit(i, offset) for each element i of a pack that is an edge: it lies at in[offset].
    template <class Visit>
    __device__ void for_edges(int pack, Visit visit) const {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
            const int edge = (pack - last_whole) * kWidth + i;
            if (edge < head) {
                visit(i, edge - head - begin * kWidth);
            } else if (edge < edges) {
                visit(i, static_cast<std::ptrdiff_t>(edge - head + last_whole * kWidth));
            }
        }
    }
};

template <bool kWhole>
__device__ Pack load_pack(const Slice<kWhole>& row, int index) {
    if (index < row.whole) return Pack::load(row.in + index * kWidth);
    Pack pack;
    for (float& x : pack.value)
        x = -INFINITY;  // changes no maximum and adds 0 to the sum
    if (!kWhole && index < row.packs)
        row.for_edges(index, [&](int i, std::ptrdiff_t offset) { pack.value[i] = row.in[offset]; });
    return pack;
}

// Streaming stores (day 6): results are evicted from the L2 cache first, so the input stays longer.
template <bool kWhole>
__device__ void store_pack(const Slice<kWhole>& row, int index, const Pack& pack) {
    const float* const x = pack.value;
    if (index < row.whole) {
        float* const to = row.out + index * kWidth;
        if (kWhole || course::is_aligned(to, sizeof(Pack))) {
            __stcs(reinterpret_cast<float4*>(to), make_float4(x[0], x[1], x[2], x[3]));
        } else {  // the row of the result starts at another offset from a multiple of 16
#pragma unroll
            for (int i = 0; i < kWidth; ++i)
                __stcs(to + i, x[i]);
        }
    } else if (!kWhole && index < row.packs) {
        row.for_edges(index, [&](int i, std::ptrdiff_t offset) { __stcs(row.out + offset, x[i]); });
    }
}

}  // namespace day21
