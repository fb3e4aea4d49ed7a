// The precision of the 16-bit types, for verify().
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/check/verify.hpp"

namespace course {

template <>
struct FloatTraits<__half> {
    static constexpr double kEpsilon = 0x1p-10;
    static constexpr double kSmallest = 0x1p-24;
};

template <>
struct FloatTraits<__nv_bfloat16> {
    static constexpr double kEpsilon = 0x1p-7;
    static constexpr double kSmallest = 0x1p-133;
};

}  // namespace course
