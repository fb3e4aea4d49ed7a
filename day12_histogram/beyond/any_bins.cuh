// Day 12, beyond: lane_copies for bytes and ints, any range and any number of bins.
//   bin(v) = floor((v - lower) * bins / (upper - lower))
//
// With integer arithmetic, a value on the border of two bins goes to the same bin on every machine.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "copies.cuh"
#include "histogram.hpp"

namespace day12 {

// Bins of equal width over [lower, lower + width), without a division per value. The host divides
// once: with rest = bins % width,
//     floor(x * bins / width) = x * (bins / width) + floor(x * rest / width),
// and rest / width is kept as a fraction of 2^64, rounded up. That is exact: x < width <= 2^32, so
// rounding adds less than x / 2^64 < 1 / width to the product, and a product that is not a whole
// number is at least 1 / width below the next one.
struct EqualBins {
    unsigned lower;
    unsigned last;   // width - 1: 2^32 itself does not fit
    unsigned whole;  // bins / width
    unsigned fraction_high, fraction_low;
    unsigned count;  // bins

    EqualBins(Range range, std::size_t bins) {
        const auto width = static_cast<std::uint64_t>(range.upper - range.lower);
        const std::uint64_t high = (bins % width) << 32;  // long division, 32 bits at a time
        const std::uint64_t low = high % width << 32;
        const std::uint64_t fraction = (high / width << 32) + course::ceil_div(low, width);
        lower = static_cast<unsigned>(range.lower);
        last = static_cast<unsigned>(width - 1);
        whole = static_cast<unsigned>(bins / width);
        fraction_high = static_cast<unsigned>(fraction >> 32);
        fraction_low = static_cast<unsigned>(fraction);
        count = static_cast<unsigned>(bins);
    }

    // The bin of a value; `count` for a value outside the range.
    __device__ unsigned bin(unsigned value) const {
        const unsigned x = value - lower;  // a value below `lower` wraps to above `last`
        const std::uint64_t high = static_cast<std::uint64_t>(x) * fraction_high + __umulhi(x, fraction_low);
        const unsigned inside = x * whole + static_cast<unsigned>(high >> 32);
        return x <= last ? inside : count;
    }
};

// The counters of a block are its slots. Ints have a slot per bin and one for all values outside
// the range, which is cheaper than a branch. Bytes have a slot per value, and the block puts its
// 256 sums into bins at the end, so that any bins cost as little as 256.
template <class Value>
struct Slots {
    static constexpr bool kIsByte = sizeof(Value) == 1;

    EqualBins bins;
    unsigned count;
    unsigned copies;  // of each slot, per block: a power of two, at most 32

    __device__ unsigned slot(Value value) const {
        if constexpr (kIsByte) return value;
        return bins.bin(static_cast<unsigned>(value));
    }

    __device__ unsigned bin(unsigned slot) const {
        if constexpr (kIsByte) return bins.bin(slot);
        return slot;
    }
};

template <class Value>
constexpr std::size_t slots_for(std::size_t bins) {
    return sizeof(Value) == 1 ? 256 : bins + 1;
}

// Idea: lane_copies with as many copies of each slot as fit in shared memory.
// Cost removed: none. Gained: any bins, and ints.
// Still limits it: memory bandwidth with 256 bins (counters: DRAM 84 % busy). With many bins there
// are fewer than 32 copies, and bank conflicts return.
template <class Value>
__global__ void __launch_bounds__(kLaneBlock)
    count_any_bins(const Value* values, std::size_t n, Slots<Value> slots, Counter* counts) {
    extern __shared__ unsigned counters[];  // slot * copies + lane % copies
    for (unsigned i = threadIdx.x; i < slots.copies * slots.count; i += kLaneBlock)
        counters[i] = 0;
    __syncthreads();

    // Offsets are in bytes, so that a single multiply-add computes the address.
    const unsigned own = threadIdx.x % slots.copies * sizeof(unsigned);
    const unsigned stride = slots.copies * sizeof(unsigned);
    for_each_in_packs(values, n, [&](Value value) {
        char* const counter = reinterpret_cast<char*>(counters) + (slots.slot(value) * stride + own);
        atomicAdd(reinterpret_cast<unsigned*>(counter), 1);
    });
    __syncthreads();

    for (unsigned slot = threadIdx.x; slot < slots.count; slot += kLaneBlock) {
        const unsigned turn = slot * slots.copies / kWarpSize;  // the lanes start in different banks
        unsigned count = 0;
#pragma unroll 8
        for (unsigned i = 0; i < slots.copies; ++i)
            count += counters[slot * slots.copies + ((i + turn) & (slots.copies - 1))];
        const unsigned bin = slots.bin(slot);
        if (count != 0 && bin < slots.bins.count) atomicAdd(counts + bin, count);
    }
}

constexpr std::size_t kLaneBytes = 100 * 1024;  // shared memory that a block spends on copies

// most_bytes: shared memory that a block can have. The copies are the largest power of two that
// fits, at least one and at most one per lane.
template <class Value>
void launch_count_any_bins(const Value* values, std::size_t n, const EqualBins& bins, std::size_t most_bytes,
                           Counter* counts, cudaStream_t stream) {
    const std::size_t slot_count = slots_for<Value>(bins.count);
    const std::size_t slot_bytes = slot_count * sizeof(unsigned);  // of one copy
    const std::size_t fit = std::min(kLaneBytes, most_bytes) / slot_bytes;
    const Slots<Value> slots{
        .bins = bins,
        .count = static_cast<unsigned>(slot_count),
        .copies = static_cast<unsigned>(std::bit_floor(std::clamp<std::size_t>(fit, 1, kWarpSize)))};
    const std::size_t shared = slot_bytes * slots.copies;
    course::allow_shared_bytes(count_any_bins<Value>, shared);

    constexpr std::size_t kValues = sizeof(Words) / sizeof(Value);
    const unsigned most = course::blocks_for(course::ceil_div(n, kValues), kLaneBlock);
    const unsigned fewest = course::blocks_for(n, 1 << 30);
    const unsigned at_once = course::resident_blocks(count_any_bins<Value>, kLaneBlock, shared);
    course::launch(count_any_bins<Value>,
                   {std::min(most, std::max(fewest, at_once)), kLaneBlock, shared, stream}, values, n, slots,
                   counts);
}

}  // namespace day12
