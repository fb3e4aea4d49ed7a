// Day 45: the operands of many products of matrices.
#pragma once

#include <cuda_runtime.h>

#include "common/device/operands.hpp"

namespace day45 {

// Conventions of the BLAS: with beta = 0, C is written and not read. A and B may be the same for
// all products (stride 0).
template <class T>
struct BatchedMatmulOf {
    course::OperandsOf<T> operands;
    course::Batch<float> c;
    float alpha = 1;
    float beta = 0;
};
using BatchedMatmul = BatchedMatmulOf<float>;

}  // namespace day45
