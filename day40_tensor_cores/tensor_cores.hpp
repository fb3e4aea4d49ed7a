// C = alpha A B + beta C on tensor cores: A and B of 16-bit floating point, sums and C in single precision. The host API of the day.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/bench/kernel_resources.hpp"
#include "common/bench/variant.hpp"
#include "common/device/device_view.hpp"

namespace day40 {

// C is m x n, A is m x k, B is k x n.
struct Shape {
    std::size_t m = 0;
    std::size_t n = 0;
    std::size_t k = 0;
};

// One multiplication of T (__half or __nv_bfloat16). Row-major, with the views' leading dimensions. Conventions of the BLAS:
// - beta = 0: C is written, not read; NaN in it does not matter;
// - alpha = 0: A and B are not read.
template <class T>
struct Gemm {
    course::DeviceMatrix<const T> a;
    course::DeviceMatrix<const T> b;
    course::DeviceMatrix<float> c;
    float alpha = 1;
    float beta = 0;
};

// What it takes to run a version with operands of T. `launch` queues the multiplication; it throws std::invalid_argument when shapes do
// not match, C overlaps A or B, or why_not() gives a reason, and CudaError when CUDA refuses.
template <class T>
struct KernelFor {
    void (*launch)(const Gemm<T>& gemm, cudaStream_t stream) = nullptr;
    // Why this version cannot take these operands (where they lie, how far their rows are apart), or "".
    std::string (*why_not)(const Gemm<T>& gemm) = nullptr;
    // Of its kernel, on the current device; null where the operands choose among kernels.
    course::KernelResources (*resources)() = nullptr;
};

struct Kernels {
    KernelFor<__half> half;
    KernelFor<__nv_bfloat16> bfloat16;
};

using Version = course::Variant<Kernels, Shape>;

// Slow to fast. What each needs of a GPU, compute capability and shared memory, is said by Version::constraint.
std::span<const Version> versions();

// The reference. T: __half or __nv_bfloat16. Packed, row-major: a is m x k, b is k x n; product and magnitude as in
// common/check/matmul_reference.hpp, which throws std::invalid_argument when a length does not match the shape.
template <class T>
void multiply_on_cpu(const Shape& shape, float alpha, std::span<const T> a, std::span<const T> b, float beta,
                     std::span<double> product, std::span<double> magnitude);

// The same values, exactly.
template <class T>
std::vector<float> as_floats(std::span<const T> values);

}  // namespace day40
