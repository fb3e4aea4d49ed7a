// What a batched product multiplies: C = op(A) op(B), for one pair of matrices or for many of the
// same shape.
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
    std::size_t stride = 0;  // elements from one matrix to the next; 0: all are the first one
    DeviceSpan<T* const>
        pointers{};  // instead of a stride: where each of them begins; `first` gives the shape

    __device__ DeviceMatrix<T> operator[](std::size_t i) const {
        return first.at(pointers.empty() ? first.data() + i * stride : pointers[i]);
    }
};

// op(A) is m x k, op(B) is k x n; m, n and k less than 2^31, leading dimensions less than 2^26.
template <class T>
struct FactorsOf {
    Batch<const T> a;
    Batch<const T> b;
    Op op_a = Op::kNone;
    Op op_b = Op::kNone;

    __host__ __device__ std::size_t m() const { return op_a == Op::kNone ? a.first.rows() : a.first.cols(); }
    __host__ __device__ std::size_t n() const { return op_b == Op::kNone ? b.first.cols() : b.first.rows(); }
    __host__ __device__ std::size_t k() const { return op_a == Op::kNone ? a.first.cols() : a.first.rows(); }
    __host__ __device__ std::size_t count() const { return a.count; }
};
using Factors = FactorsOf<float>;

// `count` products: op(A) is m x k, op(B) is k x n.
struct ProductShape {
    std::size_t count = 0;
    std::size_t m = 0;
    std::size_t n = 0;
    std::size_t k = 0;
};

// The same products transposed: C^T = op(B)^T op(A)^T. What can be done to rows of C is done to its
// columns by way of this.
Factors transposed(const Factors& factors);

// Throws std::invalid_argument, beginning with `caller`, when A and B do not fit together, or their
// counts differ. T: float or __nv_bfloat16.
template <class T>
void check_factors(const FactorsOf<T>& factors, std::string_view caller);

// Is C `factors.count()` matrices of m x n, one behind another or side by side, and none of its
// elements (of several matrices: nothing from its first to its last) in A or B? Throws
// std::invalid_argument, beginning with `caller`, when it is not. What pointers say is not known,
// and not checked.
template <class T>
void check_output(const FactorsOf<T>& factors, const Batch<float>& c, std::string_view caller);

// True: A (B) is MN-major, and its rows are 16-byte aligned and whole numbers of float4. False for
// `pointers`, which only the kernel can read.
bool a_goes_in_packs(const Factors& factors);
bool b_goes_in_packs(const Factors& factors);

}  // namespace course
