// Day 35, beyond: SELL, an ELL of its own for every warp, and the same with fewer bytes.
//
//   version       what is new                                   what limits it
//   sell          32 rows are as wide as their longest one      latency of a long row, or of each entry
//   packed_sell   columns as differences of 1, 2 or 4 bytes;    latency of long rows; else memory, or x
//                 16-byte loads
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/formats.hpp"
#include "vectorised.cuh"

namespace day35 {

static_assert(kSliceRows == kWarpSize, "a warp takes a slice, a lane a row");

constexpr int kSliceBlock = 128;

// Entry k of lane l of slice s is at slice_start[s] + 32 k + l. The lane's row is order[32 s + l],
// or 32 s + l where `order` is null.
struct SellView {
    Index rows;
    const Index* order;
    const Offset* slice_start;
    const Index* cols;
    const float* values;
};

// Idea: ELL for 32 rows at a time. A long row pads only its own slice, and less of it if the rows
// nearby were sorted by length.
// Cost removed: most of ELL's padding, and nearly all of JDS's disorder.
// Still limits it: latency of a long row, which one thread sums (power law, counters: no unit 1 %
// busy); else of each entry, whose value is loaded only after its column is compared with padding.
__global__ void __launch_bounds__(kSliceBlock) sell_kernel(SellView a, const float* x, float* y) {
    const Offset place = global_thread();
    if (place >= a.rows) return;
    const Offset slice = place / kSliceRows;
    const Offset end = a.slice_start[slice + 1];
    float sum = 0;
    for (Offset i = a.slice_start[slice] + place % kSliceRows; i < end; i += kSliceRows) {
        const Index col = __ldcs(&a.cols[i]);
        if (col == kNoColumn) break;
        sum += __ldcs(&a.values[i]) * x[col];
    }
    y[a.order == nullptr ? place : a.order[place]] = sum;
}

inline void launch_sell(const SellView& a, const float* x, float* y, cudaStream_t stream) {
    sell_kernel<<<course::blocks_for(a.rows, kSliceBlock), kSliceBlock, 0, stream>>>(a, x, y);
}

// A column is stored as the difference to the previous one, in the bytes that the slice's largest
// difference needs (PackedSlice in host/formats.hpp): columns 1023 1024 1025 2047 from base 1000
// become 23 1 1 1022, 2 bytes each.
struct PackedSellView {
    Index rows;
    const Index* order;
    const PackedSlice* slices;
    const std::uint8_t* codes;
    const float* values;
};

// A lane's row of a packed slice. `values` and `codes` point to the slice: first the lanes' entries
// 0 to 3, then 4 to 7, ..., and the last ones, fewer than four, one by one.
template <class Code>
__device__ float packed_row(const PackedSlice& slice, const Code* codes, const float* values,
                            const float* x) {
    constexpr auto kNoCode = static_cast<Code>(-1);  // padding
    const unsigned lane = threadIdx.x % kWarpSize;
    unsigned left = slice.width();
    Index col = slice.base;
    float sum = 0;
    const auto add = [&](Code code, float value) {
        if (code == kNoCode) return;
        col += static_cast<Index>(code);
        sum += value * x[col];
    };
    // Pointers move instead of an index, so that 32 registers per thread are enough, and all warps
    // fit on the SM. With 34 registers the kernel takes a quarter longer.
    codes += lane * kPack;
    values += lane * kPack;
#pragma unroll 2
    for (; left >= kPack; left -= kPack) {
        const auto four_codes = load_once<kPack>(codes);
        const auto four_values = load_once<kPack>(values);
        codes += kPack * kWarpSize;
        values += kPack * kWarpSize;
#pragma unroll
        for (int j = 0; j < kPack; ++j)
            add(four_codes.value[j], four_values.value[j]);
    }
    // The last entries are stored one by one: those of lane l are l elements in, not kPack * l.
    codes -= lane * (kPack - 1);
    values -= lane * (kPack - 1);
    for (; left > 0; --left) {
        add(__ldcs(codes), __ldcs(values));
        codes += kWarpSize;
        values += kWarpSize;
    }
    return sum;
}

// Idea: the columns of a row ascend, mostly in small steps. Only the steps are stored, in as few
// bytes as the slice's largest needs. A lane loads four entries at once: one load for the values,
// one for the codes.
// Cost removed: up to 3 of 8 bytes per entry; three of four loads.
// Still limits it: memory, at 5 or 6 bytes per entry. If columns are far apart, the loads of x,
// which move 32 bytes for each 4. On the power law latency, by the longest row (counters: L2 2 %
// busy).
__global__ void __launch_bounds__(kSliceBlock)
    packed_sell_kernel(PackedSellView a, const float* x, float* y) {
    const Offset place = global_thread();
    if (place >= a.rows) return;
    const PackedSlice slice = a.slices[place / kSliceRows];
    const float* const values = a.values + static_cast<std::size_t>(slice.first_value) * kWarpSize;
    const std::uint8_t* const codes = a.codes + static_cast<std::size_t>(slice.first_code) * kWarpSize;
    float sum = 0;
    switch (slice.code_bytes()) {
        case 1:
            sum = packed_row(slice, codes, values, x);
            break;
        case 2:
            sum = packed_row(slice, reinterpret_cast<const std::uint16_t*>(codes), values, x);
            break;
        default:
            sum = packed_row(slice, reinterpret_cast<const std::uint32_t*>(codes), values, x);
    }
    y[a.order == nullptr ? place : a.order[place]] = sum;
}

inline void launch_packed_sell(const PackedSellView& a, const float* x, float* y, cudaStream_t stream) {
    packed_sell_kernel<<<course::blocks_for(a.rows, kSliceBlock), kSliceBlock, 0, stream>>>(a, x, y);
}

}  // namespace day35
