// FP32 operands for TF32 tensor cores: each becomes a sum of two TF32 numbers.
//
// TF32 has the exponents of FP32, but 10 bits of mantissa instead of 23. So every operand becomes
// a sum of two such numbers. Of their four products, the tensor cores compute the three that
// matter:
//
//     x = big + small        big: x rounded to TF32        small: what is left, at most 2^-11 of x
//     x y = big big  +  small big + big small  (+ small small, at most 2^-22 of x y: left out)
//
// How large is the error? small has 12 bits, of which TF32 takes 11: each operand loses up to
// 2^-23. Together this is up to 2^-21 of a product, while FP32 rounds by 2^-24. But FP32 rounds
// after every term, and each time by a part of the whole sum: from about 16 terms on that costs
// more. For operands below 2^-102, small may be too small for TF32; they lose less than 2^-126.
//
// H. Ootomo, R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
// the FP32 theoretical peak performance", 2022.
#pragma once

#include <cuda_runtime.h>

namespace course {

// The same as ptx::to_tf32() for finite numbers: adds half of the lowest bit that remains, and
// truncates. This takes two instructions; the conversion takes five, because it handles NaN and
// Inf.
__device__ inline unsigned nearest_tf32(float x) {
    return (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
}

// N operands, each as big + small.
template <int N>
struct SplitOperands {
    unsigned big[N];
    unsigned small[N];
};

// small is not rounded, because tensor cores ignore the excess bits. An Inf, a NaN, and a number
// that rounds to Inf, lead to a NaN or an Inf in the sum.
template <int N>
__device__ SplitOperands<N> split(const float (&x)[N]) {
    SplitOperands<N> operands;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        operands.big[i] = nearest_tf32(x[i]);
        operands.small[i] = __float_as_uint(x[i] - __uint_as_float(operands.big[i]));
    }
    return operands;
}

}  // namespace course
