// Keys: value and column in one integer.
//
// The lower, the better. No two keys of a row are equal, so the order is exact. Tie-breaking: the
// lowest column wins. For the largest values, `sign` = -1 makes them the smallest.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace day48 {

using Key = std::uint64_t;
constexpr Key kNoKey = ~Key{0};  // after all other keys; its column does not exist

// An integer that ascends with the value, NaN last. -0 and 0 have the same rank.
__device__ inline unsigned rank_of(float value) {
    const unsigned bits = __float_as_uint(value + 0.0f);  // -0 becomes 0
    // The bits of positive floats ascend with the value: flip the sign. Those of negative ones
    // descend: flip all.
    const unsigned ascending = bits ^ (static_cast<unsigned>(static_cast<int>(bits) >> 31) | 0x80000000);
    return isnan(value) ? 0xffffffff : ascending;
}

// NaN for rank 0, and for all ranks behind that of infinity.
__device__ inline float value_of_rank(unsigned rank) {
    return __uint_as_float(rank >> 31 == 1 ? rank & 0x7fffffff : ~rank);
}

__device__ inline Key key_of(float value, unsigned col) {
    return Key{rank_of(value)} << 32 | col;
}

__device__ inline unsigned rank_of(Key key) {
    return static_cast<unsigned>(key >> 32);
}

__device__ inline float value_of(Key key) {
    return value_of_rank(rank_of(key));
}

__device__ inline unsigned col_of(Key key) {
    return static_cast<unsigned>(key);
}

}  // namespace day48
