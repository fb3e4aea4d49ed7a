// Day 50, beyond: Jacobi's method with a norm.  PMPP chapter 20 (4th edition), chapter 23 (5th edition)
//
//   version            what is new                               what limits it
//   jacobi_one_gpu     the whole grid on one GPU                 its memory and its bandwidth
//   jacobi_overlapped  edge rows first, copied beside the        the host waits for each norm
//                      sweep of the middle; sums of rows         and adds it up
//                      copied to the host
//   jacobi_nccl_norm   the sums of rows all-reduced by NCCL,     the host still waits; the
//                      so that each rank has the norm            message has all rows
//
// How many steps are enough? The method stops when the norm of the residual is small, and all GPUs
// must stop after the same step. That step must not depend on the number of GPUs.
//
// The kernel is here, the versions are in jacobi.cu.
//
//   build/cpu/bin/day50_multi_gpu --jacobi                 every version, verified and timed
#pragma once

#include <cuda_runtime.h>

#include "beyond/jacobi.hpp"
#include "common/device/warp.cuh"

namespace day50 {

constexpr int kJacobiThreads = 128;

// The rows of a rank. Row -1 and row `rows` are ghost rows: copies of the neighbours' rows.
struct Strip {
    int columns;
    int rows;
    int first;     // row 0 of the rank is this row of the whole grid
    int all_rows;  // of the whole grid

    // A slab has kRadius ghost rows on each side. This stencil needs one of them.
    __host__ __device__ std::size_t index(int row) const {
        return static_cast<std::size_t>(row + kRadius) * columns;
    }
};

struct Add {
    __device__ double operator()(double a, double b) const { return a + b; }
};

// The sum over the block, in every thread. The order of the additions depends only on the number of
// threads.
__device__ inline double sum_of_block(double value) {
    constexpr int kWarps = kJacobiThreads / course::kWarpSize;
    __shared__ double of_warp[kWarps];
    value = course::warp_reduce(value, Add{});
    const int thread = static_cast<int>(threadIdx.x);
    if (thread % course::kWarpSize == 0) of_warp[thread / course::kWarpSize] = value;
    __syncthreads();
    double sum = of_warp[0];
    for (int warp = 1; warp < kWarps; ++warp)
        sum += of_warp[warp];
    return sum;
}

// Idea: a block sweeps one row, begin + blockIdx.x * stride. In steps with a norm it also adds up
// the squares of the residuals of this row. The residual of a cell is the change in this step: the
// mean of its neighbours minus the cell.
//
// Why is there a sum for each row? A floating-point sum depends on the order of its additions. With
// one sum for each GPU, or with atomicAdd, the norm would depend on the number of GPUs or change
// from run to run. Near the tolerance, the method could then stop a step earlier or later. A row is
// never cut, so its sum has the same bits on any number of GPUs. The rows are added in their order,
// on the host.
//
// Still limits it: a block has one row, so narrow grids leave threads idle.
__global__ void jacobi_rows(const float* in, float* out, Strip strip, int begin, int stride,
                            double* row_sums) {
    const int row = begin + static_cast<int>(blockIdx.x) * stride;
    const int global_row = strip.first + row;
    const bool is_edge_row = global_row == 0 || global_row == strip.all_rows - 1;
    const float* const own = in + strip.index(row);
    const float* const before = in + strip.index(row - 1);
    const float* const after = in + strip.index(row + 1);
    float* const result = out + strip.index(row);
    double sum = 0;
    for (int column = static_cast<int>(threadIdx.x); column < strip.columns; column += kJacobiThreads) {
        if (is_edge_row || column == 0 || column == strip.columns - 1) {
            result[column] = own[column];
            continue;
        }
        const float mean = 0.25f * ((own[column - 1] + own[column + 1]) + (before[column] + after[column]));
        result[column] = mean;
        const double residual = static_cast<double>(mean) - own[column];
        sum = fma(residual, residual, sum);
    }
    // All threads of a launch agree on whether there are sums, so all threads of a block reach the
    // barrier.
    if (row_sums == nullptr) return;
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) row_sums[global_row] = sum;
}

// Sweeps `count` rows, `begin`, begin + stride and so on. Without `row_sums` no norm is computed.
inline void launch_jacobi_rows(const float* in, float* out, const Strip& strip, int begin, int stride,
                               int count, double* row_sums, cudaStream_t stream) {
    jacobi_rows<<<count, kJacobiThreads, 0, stream>>>(in, out, strip, begin, stride, row_sums);
}

}  // namespace day50
