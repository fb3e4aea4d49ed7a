// Where a matrix ends: loads that zero-fill, stores that skip what is out of range. Besides
// sgemm.hpp, this is the only header that the kernels of steps 1 to 10 use. (launch.hpp and
// steps.hpp, which their files include too, are host side.)
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "sgemm.hpp"

namespace gemm {

// One element. Out of range it is 0, which adds nothing to a sum.
__device__ inline float load_or_zero(const course::DeviceMatrix<const float>& matrix, std::size_t row,
                                     std::size_t col) {
    return row < matrix.rows() && col < matrix.cols() ? matrix(row, col) : 0.0f;
}

// Rows (columns) from `first` to the end, at most 1024: more than any tile has, so an int suffices.
__device__ inline int remaining(std::size_t extent, std::size_t first) {
    if (first >= extent) return 0;
    return extent - first < 1024 ? static_cast<int>(extent - first) : 1024;
}

// A float4 from global memory. Its first `count` elements are in range; the others are zero-filled.
__device__ inline float4 load4_or_zero(const float* from, int count) {
    if (count >= 4) return *reinterpret_cast<const float4*>(from);
    return {count > 0 ? from[0] : 0.0f, count > 1 ? from[1] : 0.0f, count > 2 ? from[2] : 0.0f, 0.0f};
}

// A float4 from shared memory, in one load.
__device__ inline void load4(const float* from, float* to) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

// alpha sum + beta element. With beta = 0, the element is not read.
__device__ inline float updated(const Sgemm& gemm, float sum, const float& element) {
    return gemm.beta == 0 ? gemm.alpha * sum : gemm.alpha * sum + gemm.beta * element;
}

// C(row, col) = alpha sum + beta C(row, col).
__device__ inline void store(const Sgemm& gemm, std::size_t row, std::size_t col, float sum) {
    if (row < gemm.m() && col < gemm.n()) gemm.c(row, col) = updated(gemm, sum, gemm.c(row, col));
}

// The same for C(row, col) to C(row, col + 3): a float4, where all four are in range.
__device__ inline void store4(const Sgemm& gemm, std::size_t row, std::size_t col, const float* sums) {
    if (row >= gemm.m() || col >= gemm.n()) return;
    float* const c = &gemm.c(row, col);
    const int count = remaining(gemm.n(), col);
    if (count >= 4) {
        float4 four{};
        if (gemm.beta != 0) four = *reinterpret_cast<const float4*>(c);
        *reinterpret_cast<float4*>(c) = {updated(gemm, sums[0], four.x), updated(gemm, sums[1], four.y),
                                         updated(gemm, sums[2], four.z), updated(gemm, sums[3], four.w)};
    } else {
        // Unrolled: an array indexed at run time would be placed in local memory.
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            if (j < count) c[j] = updated(gemm, sums[j], c[j]);
        }
    }
}

}  // namespace gemm
