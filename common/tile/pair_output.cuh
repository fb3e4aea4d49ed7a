// Stores the results of a matrix product, two adjacent elements of a row at a time, as they lie in
// the fragments of tensor cores.
#pragma once

#include <cuda_runtime.h>

#include "common/device/device_view.hpp"
#include "common/device/pack.cuh"

namespace course {

// Sum: float, or int for integer operands.
template <class Sum>
struct OutputOf {
    DeviceMatrix<Sum> c;
    Sum alpha;
    Sum beta;
    bool pairs;  // every element with an even column is 8-byte aligned
};

template <class Sum>
using PairOf = Pack<Sum, 2>;

template <class Sum>
__host__ __device__ OutputOf<Sum> make_output(const DeviceMatrix<Sum>& c, Sum alpha, Sum beta) {
    return {.c = c,
            .alpha = alpha,
            .beta = beta,
            .pairs = c.leading_dimension() % 2 == 0 && is_aligned(c.data(), 8)};
}

template <class Sum>
__device__ bool inside(const OutputOf<Sum>& out, int row, int col) {
    return row < static_cast<int>(out.c.rows()) && col < static_cast<int>(out.c.cols());
}

// The results at (row, col) and the column after it: alpha sum + beta C. C is read only if beta is
// not 0.
template <class Sum>
__device__ PairOf<Sum> finished(const OutputOf<Sum>& out, int row, int col, Sum sum, Sum beside) {
    PairOf<Sum> result = {{out.alpha * sum, out.alpha * beside}};
    if (out.beta != 0) {
        if (inside(out, row, col)) result.value[0] += out.beta * out.c(row, col);
        if (inside(out, row, col + 1)) result.value[1] += out.beta * out.c(row, col + 1);
    }
    return result;
}

// Stores these two results; `col` is even.
template <class Sum>
__device__ void store_pair(const OutputOf<Sum>& out, int row, int col, Sum sum, Sum beside) {
    const PairOf<Sum> result = finished(out, row, col, sum, beside);
    if (out.pairs && inside(out, row, col + 1)) {
        result.store(&out.c(row, col));
    } else {
        if (inside(out, row, col)) out.c(row, col) = result.value[0];
        if (inside(out, row, col + 1)) out.c(row, col + 1) = result.value[1];
    }
}

}  // namespace course
