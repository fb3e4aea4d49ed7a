// C = A B with Hopper's TMA and wgmma: 16-bit operands, sums in FP32, and C of the operands' type.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/bench/kernel_resources.hpp"
#include "common/bench/version.hpp"
#include "common/check/matmul_arguments.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_view.hpp"
#include "hopper_matmul.hpp"

namespace day41 {

using course::DeviceMatrix;

// T: __half or __nv_bfloat16. Row-major, with the views' leading dimensions. A sum that T cannot
// hold, of 65520 or more in __half, becomes infinite.
template <class T>
struct RoundedMatmul {
    DeviceMatrix<const T> a;
    DeviceMatrix<const T> b;
    DeviceMatrix<T> c;
};

// As KernelFor of half_matmul.hpp. C may have any alignment; rows of A and B are 16-byte aligned.
template <class T>
struct RoundedKernelFor {
    void (*launch)(const RoundedMatmul<T>& matmul, cudaStream_t stream) = nullptr;
    std::string (*why_not)(const RoundedMatmul<T>& matmul) = nullptr;
    course::KernelResources (*resources)() = nullptr;
};

struct RoundedKernels {
    RoundedKernelFor<__half> half;
    RoundedKernelFor<__nv_bfloat16> bfloat16;

    template <class T>
    const RoundedKernelFor<T>& of() const {
        if constexpr (std::is_same_v<T, __half>) {
            return half;
        } else {
            return bfloat16;
        }
    }
};

// "stored_pairs" and "stmatrix".
using RoundedVersion = course::Version<RoundedKernels, Shape>;
std::span<const RoundedVersion> rounded_versions();

// Compares results of type T with the product in double. `of_sum` bounds the error of a sum in
// FP32, for which `magnitude` has the sum of its terms' absolute values; rounding adds half a unit
// in the last place of T.
template <class T>
course::VerifyResult verify_rounded(const std::vector<T>& got, std::span<const double> product,
                                    std::span<const double> magnitude, const course::Bound& of_sum,
                                    std::size_t cols);

}  // namespace day41
