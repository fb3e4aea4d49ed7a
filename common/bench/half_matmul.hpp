// C = alpha A B + beta C with 16-bit operands, and with sums and C in FP32: the problem of days 40
// and 41, its versions, the checks of the arguments, and the reference.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/bench/kernel_resources.hpp"
#include "common/bench/version.hpp"
#include "common/bench/work.hpp"
#include "common/check/matmul_arguments.hpp"
#include "common/device/device_view.hpp"

namespace course::half_matmul {

// C is m x n, A is m x k, B is k x n.
using Shape = MatmulShape;

// One multiplication of T (__half or __nv_bfloat16). Row-major, with the views' leading dimensions.
// It follows the conventions of the BLAS:
// - beta = 0: C is written, not read, so a NaN in it has no effect;
// - alpha = 0: A and B are not read.
template <class T>
struct Gemm {
    DeviceMatrix<const T> a;
    DeviceMatrix<const T> b;
    DeviceMatrix<float> c;
    float alpha = 1;
    float beta = 0;
};

// How a version runs with operands of type T. `launch` queues the multiplication. It throws
// std::invalid_argument when shapes do not match, when C overlaps A or B, or when why_not() returns
// a reason, and CudaError when a CUDA call fails.
template <class T>
struct KernelFor {
    void (*launch)(const Gemm<T>& gemm, cudaStream_t stream) = nullptr;
    // Why this version cannot take these matrices (their alignment and leading dimensions), or "".
    std::string (*why_not)(const Gemm<T>& gemm) = nullptr;
    // The resources of its kernel on the current device; null where the choice of kernel depends
    // on the matrices.
    KernelResources (*resources)() = nullptr;
};

struct Kernels {
    KernelFor<__half> half;
    KernelFor<__nv_bfloat16> bfloat16;
};

using Version = course::Version<Kernels, Shape>;

template <class T>
const KernelFor<T>& kernel_of(const Version& version) {
    if constexpr (std::is_same_v<T, __half>) {
        return version.launcher.half;
    } else {
        return version.launcher.bfloat16;
    }
}

// The multiplication in the form that kernels expect. If nothing is multiplied (alpha = 0 or K =
// 0), K and alpha are both 0. Throws std::invalid_argument, with `topic` first, when shapes do not
// match or C overlaps A or B.
template <class T>
Gemm<T> checked(const char* topic, const Gemm<T>& gemm) {
    const auto& [a, b, c, alpha, beta] = gemm;
    require(a.rows() == c.rows() && a.cols() == b.rows() && b.cols() == c.cols(), topic, ": A is ", a,
            ", B is ", b, ", C is ", c, "; expected A: M x K, B: K x N, C: M x N");
    check_extents_and_overlap(topic, a, b, c);
    Gemm<T> result = gemm;
    if (alpha == 0 || a.cols() == 0) {
        const auto nothing = [](const T* data) { return DeviceSpan<const T>::from_device_pointer(data, 0); };
        result.a = DeviceMatrix<const T>(nothing(a.data()), a.rows(), 0);
        result.b = DeviceMatrix<const T>(nothing(b.data()), 0, b.cols());
        result.alpha = 0;  // even an infinite alpha: there is nothing to scale
    }
    return result;
}

// The minimum work of every version.
inline Work work_of(const Shape& shape) {
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = 2 * (m * k + k * n) + 4 * m * n,
            .written = 4 * m * n,
            .flops = 2 * m * n * k,
            .arithmetic = Arithmetic::kOther};
}

// The reference. Packed, row-major: a is m x k, b is k x n; product and magnitude as in
// common/check/matmul_reference.hpp, which throws std::invalid_argument when a length does not
// match.
template <class T>
void multiply_on_cpu(const Shape& shape, float alpha, std::span<const T> a, std::span<const T> b, float beta,
                     std::span<double> product, std::span<double> magnitude);

// The same values: a float holds them exactly.
template <class T>
std::vector<float> as_floats(std::span<const T> values);

}  // namespace course::half_matmul
