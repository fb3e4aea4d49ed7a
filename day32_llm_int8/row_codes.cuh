// The scale and the codes of a row, as on day 30: symmetric, the largest magnitude becomes 127.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstring>

#include "common/device/octet.cuh"
#include "common/device/warp.cuh"

namespace day32 {

using course::kWarpSize;
using Octet = course::Octet<__half>;

// Floats that are not negative are ordered like their bits, and NaN comes last. So magnitudes are
// compared as integers: unlike fmaxf, max() keeps a NaN.
__device__ inline unsigned magnitude_bits(__half2 largest) {
    return max(__float_as_uint(fabsf(__low2float(largest))), __float_as_uint(fabsf(__high2float(largest))));
}

// The largest of one value per thread, in every thread of the block. All threads call it, once.
template <int kThreads>
__device__ unsigned block_max(unsigned value) {
    constexpr int kWarps = kThreads / kWarpSize;
    const auto larger = [](unsigned a, unsigned b) { return max(a, b); };
    __shared__ unsigned of_warp[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    value = course::warp_reduce(value, larger);
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    return course::warp_reduce(of_warp[lane % kWarps], larger);
}

// max|x| / 127: NaN for a row with a NaN or an Inf, 0 for a row of zeros.
__device__ inline float scale_of(unsigned largest) {
    constexpr unsigned kInfinityBits = 0x7f800000u;
    if (largest >= kInfinityBits) return __uint_as_float(0x7fffffffu);
    const float scale = __uint_as_float(largest) / 127;
    return scale < FLT_MIN ? 0.0f : scale;
}

// Adding 1.5 * 2^23 rounds to the nearest integer, which is then the lowest byte of the float (day
// 30).
constexpr float kRounding = 12582912.0f;

__device__ inline unsigned low_bytes(float a, float b, float c, float d) {
    const unsigned ab = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x0040);
    const unsigned cd = __byte_perm(__float_as_uint(c), __float_as_uint(d), 0x0040);
    return __byte_perm(ab, cd, 0x5410);
}

// 1 / scale, or 0 if the scale is 0 or NaN: then all codes are 0.
__device__ inline float inverse_of(float scale) {
    return scale >= FLT_MIN ? 1 / scale : 0.0f;
}

// The codes of eight values: round(x / scale).
__device__ inline course::ByteOctet quantize(const Octet& x, float inverse) {
    const unsigned valid = inverse > 0 ? 0xffffffffu : 0u;
    const auto round = [&](int k) { return fmaf(x[k], inverse, kRounding); };
    const unsigned words[2] = {low_bytes(round(0), round(1), round(2), round(3)) & valid,
                               low_bytes(round(4), round(5), round(6), round(7)) & valid};
    course::ByteOctet bytes;
    std::memcpy(&bytes, words, sizeof(bytes));
    return bytes;
}

}  // namespace day32
