// The operands of a batched matrix product: C = op(A) op(B), for one pair of matrices or for many
// pairs of the same shape.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string_view>

#include "common/device/device_view.hpp"

namespace course {

// As in the BLAS: a matrix, or its transpose.
enum class Op { kNone, kTranspose };

// `count` matrices of one shape in device memory, row-major.
template <class T>
struct Batch {
    DeviceMatrix<T> first;
    std::size_t count = 1;
    std::size_t stride = 0;  // elements from one matrix to the next; 0: one matrix for all products
    // The address of each matrix, instead of a stride. `first` then determines only the shape.
    DeviceSpan<T* const> pointers{};

    __device__ DeviceMatrix<T> operator[](std::size_t i) const {
        return first.at(pointers.empty() ? first.data() + i * stride : pointers[i]);
    }
};

// op(A) is m x k, op(B) is k x n; m, n and k less than 2^31, leading dimensions less than 2^26.
template <class T>
struct OperandsOf {
    Batch<const T> a;
    Batch<const T> b;
    Op op_a = Op::kNone;
    Op op_b = Op::kNone;

    __host__ __device__ std::size_t m() const { return op_a == Op::kNone ? a.first.rows() : a.first.cols(); }
    __host__ __device__ std::size_t n() const { return op_b == Op::kNone ? b.first.cols() : b.first.rows(); }
    __host__ __device__ std::size_t k() const { return op_a == Op::kNone ? a.first.cols() : a.first.rows(); }
    __host__ __device__ std::size_t count() const { return a.count; }
};
using Operands = OperandsOf<float>;

// `count` products: op(A) is m x k, op(B) is k x n.
struct ProductShape {
    std::size_t count = 0;
    std::size_t m = 0;
    std::size_t n = 0;
    std::size_t k = 0;
};

// The same products transposed: C^T = op(B)^T op(A)^T. With this, a kernel that processes rows of
// C can process its columns.
Operands transposed(const Operands& operands);

// Throws std::invalid_argument, beginning with `caller`, when A and B do not fit together, or their
// counts differ. T: float, __nv_bfloat16 or __half.
template <class T>
void check_operands(const OperandsOf<T>& operands, std::string_view caller);

// Checks that C has `operands.count()` matrices of m x n, one after the other or side by side, and
// does not overlap A or B. (For several matrices, all memory between the first and the last element
// counts.) Throws std::invalid_argument, beginning with `caller`, otherwise. Matrices given by
// `pointers` are not checked, because the host cannot read the pointers.
template <class T>
void check_output(const OperandsOf<T>& operands, const Batch<float>& c, std::string_view caller);

// True if A (B) is MN-major, and its rows are 16-byte aligned and consist of whole float4. False
// for `pointers`, which only the kernel can read.
bool a_goes_in_packs(const Operands& operands);
bool b_goes_in_packs(const Operands& operands);

}  // namespace course
