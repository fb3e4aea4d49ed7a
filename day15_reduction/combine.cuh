// Two results become one in memory, as one step that no other block can come between: out = op(out, value).
// The hardware has such atomic operations for some types; the others are brought to one of these.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reduction.hpp"

namespace day15 {

__device__ inline void combine(Sum<float>, float* out, float value) {
    atomicAdd(out, value);
}

// Addition modulo 2^64 does not care for signs.
template <class T>
__device__ void combine(Sum<T>, std::int64_t* out, std::int64_t value) {
    atomicAdd(reinterpret_cast<unsigned long long*>(out), static_cast<unsigned long long>(value));
}

// std::int64_t is `long` here, atomics know `long long`: two names for the same 64 bits.
__device__ inline void combine(Min<std::int32_t>, std::int32_t* out, std::int32_t value) {
    atomicMin(out, value);
}
__device__ inline void combine(Min<std::int64_t>, std::int64_t* out, std::int64_t value) {
    atomicMin(reinterpret_cast<long long*>(out), static_cast<long long>(value));
}
__device__ inline void combine(Max<std::int32_t>, std::int32_t* out, std::int32_t value) {
    atomicMax(out, value);
}
__device__ inline void combine(Max<std::int64_t>, std::int64_t* out, std::int64_t value) {
    atomicMax(reinterpret_cast<long long*>(out), static_cast<long long>(value));
}

// Floats have no atomic minimum, but their bits do. A float is sign and magnitude, the exponent above the mantissa, so
//   without sign, floats are in the order of their bits read as an integer, and above all with sign, whose bits are negative integers;
//   with sign, the order is the reverse of their bits read as unsigned, which are above all those without.
// So the value's own sign decides which of the two comparisons is right, whatever stands in memory.
// NaN must win: as the greatest unsigned (minimum), or the greatest int (maximum), which both happen to be NaNs.
__device__ inline void combine(Min<float>, float* out, float value) {
    const int bits = value != value ? -1 : __float_as_int(value);
    if (bits >= 0) {
        atomicMin(reinterpret_cast<int*>(out), bits);
    } else {
        atomicMax(reinterpret_cast<unsigned*>(out), static_cast<unsigned>(bits));
    }
}
__device__ inline void combine(Max<float>, float* out, float value) {
    const int bits = value != value ? 0x7fffffff : __float_as_int(value);
    if (bits >= 0) {
        atomicMax(reinterpret_cast<int*>(out), bits);
    } else {
        atomicMin(reinterpret_cast<unsigned*>(out), static_cast<unsigned>(bits));
    }
}

}  // namespace day15
