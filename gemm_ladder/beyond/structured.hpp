// Products with a matrix of which half is known: SYRK, SYMM and TRMM of the BLAS, row-major, any
// shape and alignment (structured.cuh).
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <span>

#include "common/device/device_view.hpp"
#include "common/device/operands.hpp"

namespace gemm {

// The triangle of a square matrix, with its diagonal, that is read or written. The elements of the
// other one are neither read nor written.
enum class Triangle { kLower, kUpper };
// Where the square matrix stands in the product.
enum class Side { kLeft, kRight };
// kUnit: the diagonal is all ones, and is not read.
enum class Diagonal { kStored, kUnit };

// SYRK: C = alpha op(A) op(A)^T + beta C. C is n x n and symmetric; op(A) is n x k. Only `triangle`
// of C is written.
struct Syrk {
    course::DeviceMatrix<const float> a;
    course::DeviceMatrix<float> c;
    course::Op op_a = course::Op::kNone;
    Triangle triangle = Triangle::kLower;
    float alpha = 1;
    float beta = 0;
};

// SYMM: C = alpha A B + beta C, or alpha B A + beta C. A is square and symmetric, and stored in
// `triangle`.
struct Symm {
    course::DeviceMatrix<const float> a;
    course::DeviceMatrix<const float> b;
    course::DeviceMatrix<float> c;
    Side side = Side::kLeft;
    Triangle triangle = Triangle::kLower;
    float alpha = 1;
    float beta = 0;
};

// TRMM: C = alpha op(A) B + beta C, or alpha B op(A) + beta C. A is square and zero outside of
// `triangle`. (The BLAS overwrites B, and has no beta; cuBLAS writes to C, as here.)
struct Trmm {
    course::DeviceMatrix<const float> a;
    course::DeviceMatrix<const float> b;
    course::DeviceMatrix<float> c;
    Side side = Side::kLeft;
    Triangle triangle = Triangle::kLower;
    course::Op op_a = course::Op::kNone;
    Diagonal diagonal = Diagonal::kStored;
    float alpha = 1;
    float beta = 0;
};

// Queue the product. As in the BLAS: beta = 0: C is not read; alpha = 0: neither operand is read.
// Throw std::invalid_argument when shapes do not match, C overlaps an operand, or a leading
// dimension is 2^26 or more; CudaError when a launch fails.
void syrk(const Syrk& problem, cudaStream_t stream);
void symm(const Symm& problem, cudaStream_t stream);
void trmm(const Trmm& problem, cudaStream_t stream);

// The row of tile i of a triangle whose row r has r + 1 tiles: the largest r for which r (r + 1) /
// 2 is at most i.
__host__ __device__ inline unsigned row_in_triangle(unsigned i) {
    const auto before = [](unsigned row) { return static_cast<unsigned long long>(row) * (row + 1) / 2; };
    // r^2 + r - 2 i = 0. The square root of a float may be off by one row, so it is checked.
    auto row = static_cast<unsigned>((sqrtf(8.0f * static_cast<float>(i) + 1) - 1) / 2);
    if (before(row) > i) --row;
    if (before(row + 1) <= i) ++row;
    return row;
}

// The references: plain loops in double that follow the definitions, with the same arguments as
// above. Packed, row-major. `c` holds C before and after: the elements that are not written keep
// their values. `magnitude` is the sum of the absolute values of the terms of each element, which
// bounds its rounding errors; 0 if it is not written.
void syrk_on_cpu(std::size_t n, std::size_t k, course::Op op_a, Triangle triangle, float alpha,
                 std::span<const float> a, float beta, std::span<double> c, std::span<double> magnitude);
void symm_on_cpu(std::size_t m, std::size_t n, Side side, Triangle triangle, float alpha,
                 std::span<const float> a, std::span<const float> b, float beta, std::span<double> c,
                 std::span<double> magnitude);
void trmm_on_cpu(std::size_t m, std::size_t n, Side side, Triangle triangle, course::Op op_a,
                 Diagonal diagonal, float alpha, std::span<const float> a, std::span<const float> b,
                 float beta, std::span<double> c, std::span<double> magnitude);

}  // namespace gemm
