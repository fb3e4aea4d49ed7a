// Approximate arithmetic (PTX ISA, .approx; day code reaches it through common/ptx.cuh).
#pragma once

#include <cfloat>
#include <cmath>

namespace cuda_on_cpu::ptx {

// 2^x, closer than any GPU. As there, results below the normal numbers are 0; that an x below them counts as 0 needs no
// line of its own, since 2^x is 1 for it either way.
inline float exp2_approx(float x) {
    const float result = std::exp2(x);
    return result < FLT_MIN ? 0.0f : result;
}

}  // namespace cuda_on_cpu::ptx
