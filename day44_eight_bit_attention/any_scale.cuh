// Day 44: scales of any value.
//
// The softmax takes a positive, finite scale factor, because it multiplies the largest score and
// scores of -Inf. A product of scales that is negative or not finite changes the elements of Q
// instead, once for each tile of rows. The main loop stays as it is.
#pragma once

#include <cuda_runtime.h>

#include <cfloat>

#include "common/device/ptx_hopper.cuh"
#include "common/tile/warpgroup.cuh"

namespace day44 {

// At least FLT_MIN, because 0 times -Inf is NaN. Scores are sums of 128 products of at most 448^2,
// so exp2() of them is 1 with either factor.
__device__ inline float positive_factor(float factor) {
    const float size = fabsf(factor);
    return size <= FLT_MAX ? fmaxf(size, FLT_MIN) : 1.0f;
}

// Negates Q if `factor` is negative, and makes it NaN if `factor` is not finite: then so are the
// scores of all keys that a row sees. All threads of the warpgroup that owns these rows must call
// it.
template <class Queries>
__device__ void correct_queries(Queries& q, float factor, unsigned barrier) {
    const bool is_finite = fabsf(factor) <= FLT_MAX;
    if (is_finite && factor >= 0) return;
    auto* const words = reinterpret_cast<unsigned*>(q.element);
    for (unsigned i = threadIdx.x % course::kWarpgroup; i < sizeof(q) / sizeof(unsigned);
         i += course::kWarpgroup)
        words[i] = is_finite ? words[i] ^ 0x80808080u : 0x7f7f7f7fu;
    course::ptx::fence_proxy_async();  // wgmma reads what was written, and TMA overwrites it
    course::ptx::named_barrier(barrier, course::kWarpgroup);
}

// The factor of the result is multiplied by 1 / sum first, which may be 2^-40. If a factor is so
// small that the product would have fewer bits than a float, a part of it is applied to the sums.
template <int COUNT>
__device__ float spare_small_factor(float (&out)[COUNT], float factor) {
    constexpr float kPart = 0x1p-60f;
    if (!(fabsf(factor) < 0x1p-80f)) return factor;
#pragma unroll
    for (float& x : out)
        x *= kPart;
    return factor / kPart;
}

}  // namespace day44
