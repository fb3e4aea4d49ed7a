// Which counter is a value counted in? Arithmetic that all versions share.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/grid.hpp"
#include "histogram.hpp"

namespace day12 {

inline constexpr std::size_t kMostBins = std::size_t{1} << 31;

// Bins of equal width over [lower, lower + width), without a division for each value: with rest = bins % width,
// floor(x * bins / width) = x * (bins / width) + floor(x * rest / width), and rest / width is kept as a fraction of 2^64,
// rounded up. That is exact: x < width <= 2^32, so rounding adds less than x / 2^64 < 1 / width to the product, and no
// product that is not whole is nearer than 1 / width to the next whole number.
struct EqualBins {
    unsigned lower;
    unsigned last;   // width - 1: 2^32 itself does not fit
    unsigned whole;  // bins / width
    unsigned fraction_high, fraction_low;
    unsigned count;  // bins

    EqualBins(Range range, std::size_t bins) {
        const auto width = static_cast<std::uint64_t>(range.upper - range.lower);
        const std::uint64_t high = (bins % width) << 32;  // long division by hand, 32 bits at a time
        const std::uint64_t low = high % width << 32;
        const std::uint64_t fraction = (high / width << 32) + course::ceil_div(low, width);
        lower = static_cast<unsigned>(range.lower);
        last = static_cast<unsigned>(width - 1);
        whole = static_cast<unsigned>(bins / width);
        fraction_high = static_cast<unsigned>(fraction >> 32);
        fraction_low = static_cast<unsigned>(fraction);
        count = static_cast<unsigned>(bins);
    }

    // The bin of a value, or `count` for one outside.
    __device__ unsigned bin(unsigned value) const {
        const unsigned x = value - lower;  // what is below `lower` wraps round, to beyond `last`
        const std::uint64_t high = static_cast<std::uint64_t>(x) * fraction_high + __umulhi(x, fraction_low);
        const unsigned inside = x * whole + static_cast<unsigned>(high >> 32);
        return x <= last ? inside : count;
    }
};

// The counters of a block are its slots. Ints have a slot for each bin, and one for all values outside, which costs less than
// a branch for each value. Bytes have a slot for each of the 256 values, and these are put into bins when the block is done:
// any bins cost as little as 256.
template <class Value>
struct Slots {
    static constexpr bool kIsByte = sizeof(Value) == 1;

    EqualBins bins;
    unsigned count;
    unsigned copies;  // of each slot, per block: a power of two

    __device__ unsigned slot(Value value) const {
        if constexpr (kIsByte) return value;
        return bins.bin(static_cast<unsigned>(value));
    }

    __device__ unsigned bin(unsigned slot) const {
        if constexpr (kIsByte) return bins.bin(slot);
        return slot;
    }
};

}  // namespace day12
