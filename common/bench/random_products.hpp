// Matrix products of random shapes, for --sweep. A seed determines the shapes. The device
// generates the operands and verifies the results, so hundreds of shapes take only seconds.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/bench/program.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/operands.hpp"

namespace course {

// How shapes are drawn.
struct RandomShapes {
    std::uint64_t seed = 27;
    std::size_t count = 200;
    double least = 5;  // extents from 2^least to 2^most, their logarithms uniform
    double most = 13;
    double thinnest = 1;       // every fourth shape has one extent between 2^thinnest and 2^least
    std::size_t multiple = 1;  // all extents are multiples of it
};

// m x n x k. The extents are multiples of 1, 2, 4, ..., 64 in turn from shape to shape.
std::vector<Dims> random_matmuls(const RandomShapes& how = {});

// `count` products C = op(A) op(B), packed and stored one after the other; the operands are
// normally distributed.
// T: float, __nv_bfloat16, std::int8_t, __nv_fp8_e4m3.
template <class T>
class RandomProducts {
  public:
    using Sum = std::conditional_t<std::is_integral_v<T>, std::int32_t, float>;

    explicit RandomProducts(const ProductShape& shape, Op op_a = Op::kNone, Op op_b = Op::kNone);

    const ProductShape& shape() const { return shape_; }
    // The first of the matrices.
    DeviceMatrix<const T> a() const { return matrix(a_, op_a_, shape_.m, shape_.k); }
    DeviceMatrix<const T> b() const { return matrix(b_, op_b_, shape_.k, shape_.n); }
    DeviceMatrix<Sum> c() { return c_.matrix(shape_.m, shape_.n); }

    void spoil() { c_.spoil(); }

    // Compares every element with its sum in double; integers exactly.
    VerifyResult verify(const Bound& bound);
    VerifyResult verify() { return verify({.terms = shape_.k, .growth = Growth::kSquareRoot}); }

  private:
    static DeviceMatrix<const T> matrix(const DeviceBuffer<T>& all, Op op, std::size_t rows,
                                        std::size_t cols) {
        return op == Op::kNone ? all.matrix(rows, cols) : all.matrix(cols, rows);
    }

    ProductShape shape_;
    Op op_a_, op_b_;
    DeviceBuffer<T> a_, b_;
    GuardedBuffer<Sum> c_;
    DeviceBuffer<double> product_, magnitude_;
};

}  // namespace course
