// What the batched products in FP32 and in BF16 share: checks, and the version that all others are compared with.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "common/check.hpp"
#include "common/grid.hpp"
#include "fused_matmul.hpp"
#include "write_tile.cuh"

namespace day45 {

// --- Kernels ---------------------------------------------------------------------------------------------------------

template <class T>
__device__ float element_of(const course::DeviceMatrix<const T>& matrix, Op op, std::size_t row,
                            std::size_t col) {
    return static_cast<float>(op == Op::kNone ? matrix(row, col) : matrix(col, row));
}

// Idea: a thread for each element of each C.
// Cost removed: a launch for each product.
// Still limits it: every multiply-add waits for two loads.
template <class T>
__global__ void multiply_one_thread_each(const BatchedMatmulOf<T> matmul) {
    const FactorsOf<T>& factors = matmul.factors;
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t in_product = i % (factors.m() * factors.n());
    const std::size_t product = i / (factors.m() * factors.n());
    if (product >= factors.count()) return;
    const std::size_t row = in_product / factors.n();
    const std::size_t col = in_product % factors.n();
    const course::DeviceMatrix<const T> a = factors.a[product];
    const course::DeviceMatrix<const T> b = factors.b[product];
    float sum = 0;
    for (std::size_t k = 0; k < factors.k(); ++k)
        sum += element_of(a, factors.op_a, row, k) * element_of(b, factors.op_b, k, col);
    update(matmul.c[product](row, col), matmul.alpha, sum, matmul.beta);
}

// --- Launchers -------------------------------------------------------------------------------------------------------

template <class T>
course::Work work(const Shape& shape) {
    const auto count = static_cast<double>(shape.count);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = count * (sizeof(T) * (m * k + k * n) + sizeof(float) * m * n),
            .written = count * sizeof(float) * m * n,
            .flops = 2 * count * m * n * k,
            .arithmetic = std::is_same_v<T, float> ? course::Arithmetic::kFp32 : course::Arithmetic::kOther};
}

// False: there is nothing to do.
template <class T>
bool is_worth_a_launch(const BatchedMatmulOf<T>& matmul) {
    check(matmul.factors, "batched matmul");
    check_output(matmul.factors, matmul.c, "batched matmul");
    const auto& c = matmul.c.first;
    return c.rows() != 0 && c.cols() != 0 && matmul.c.count != 0;
}

template <class T>
void launch_one_thread_each(const BatchedMatmulOf<T>& matmul, cudaStream_t stream) {
    if (!is_worth_a_launch(matmul)) return;
    constexpr int kThreads = 256;
    const std::size_t elements = matmul.c.first.rows() * matmul.c.first.cols() * matmul.c.count;
    multiply_one_thread_each<T><<<course::blocks_for(elements, kThreads), kThreads, 0, stream>>>(matmul);
    CUDA_CHECK_LAUNCH();
}

}  // namespace day45
