// Day 5: tiled matrix multiplication, C = A B.     PMPP chapters 3, 5 and 6 (4th and 5th edition)
//
//   version           what is new                               what limits it
//   naive_*           one thread per element of C               uncoalesced loads of A
//   coalesced_*       threadIdx.x is the column, not the row    two global loads per multiply-add
//   tiled_static      tiles of A and B in shared memory         shared memory; waiting at barriers
//   coarsened         four elements of C per thread             1.25 shared loads per multiply-add
//
// A is M x K, B is K x N, C is M x N, all row-major. `a(row, k)` is an element of A: a DeviceMatrix
// computes data[row * leading_dimension + k]. Blocks are square. Each kernel is followed by its
// launch. A C that is too large for one grid is computed in parts (matmul_tiled.cu), so 32 bits are
// enough for blockIdx * kTile. beyond/ has two more versions and the limit of such tiles.
//
// Every version does 2 M N K operations. They differ in how many bytes they load for that.
//
//   ./course run day05                                     every version, verified and timed
//   ./course run day05 --program                           program.cu: one product, from main() on
//   ./course inspect day05 --only naive_32x32              sectors per load, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"

namespace day05 {

using course::DeviceMatrix;

// Idea: one thread per element of C. threadIdx.x is the row, threadIdx.y the column.
// Cost removed: the two outer loops of the CPU.
// Still limits it: the threads of a warp are in different rows. When they load a(row, k), their
// addresses are a whole row of A apart: one sector of 32 bytes for each thread. Counters: L1, which
// looks up these sectors, is 99 % busy.
__global__ void multiply_naive(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                               DeviceMatrix<float> c) {
    const std::size_t row = blockIdx.y * blockDim.y + threadIdx.x;
    const std::size_t col = blockIdx.x * blockDim.x + threadIdx.y;
    if (row >= c.rows() || col >= c.cols()) return;

    float sum = 0;
    for (std::size_t k = 0; k < a.cols(); ++k)
        sum += a(row, k) * b(k, col);
    c(row, col) = sum;
}

// A grid that covers C, rounded up, with blocks that compute `rows` x `cols` elements each. The
// grid's y counts rows of blocks, its x columns of blocks.
inline dim3 grid_over(DeviceMatrix<float> c, unsigned rows, unsigned cols) {
    return {static_cast<unsigned>((c.cols() + cols - 1) / cols),
            static_cast<unsigned>((c.rows() + rows - 1) / rows)};
}

inline void launch_naive(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                         unsigned side, cudaStream_t stream) {
    const dim3 block(side, side);  // one thread per element of C
    multiply_naive<<<grid_over(c, side, side), block, 0, stream>>>(a, b, c);
}

// Idea: threadIdx.x is the column. This is the only change.
// Cost removed: uncoalesced loads. The threads of a warp are in one row, so they load the same
// element of A and 32 adjacent elements of B.
// Still limits it: two global loads per multiply-add, and each element is loaded again by every
// thread that needs it. Counters: L1 87 % busy with blocks of 16 x 16. With 32 x 32 it is 56 %, and
// warps spend 66 % of their time waiting for these loads.
__global__ void multiply_coalesced(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                   DeviceMatrix<float> c) {
    const std::size_t row = blockIdx.y * blockDim.y + threadIdx.y;
    const std::size_t col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= c.rows() || col >= c.cols()) return;

    float sum = 0;
    for (std::size_t k = 0; k < a.cols(); ++k)
        sum += a(row, k) * b(k, col);
    c(row, col) = sum;
}

inline void launch_coalesced(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                             unsigned side, cudaStream_t stream) {
    const dim3 block(side, side);
    multiply_coalesced<<<grid_over(c, side, side), block, 0, stream>>>(a, b, c);
}

constexpr int kTile = 32;  // rows and columns of a tile; a block has kTile x kTile threads

// Idea: the block loads a tile of A and a tile of B into shared memory. Each element loaded is used
// by kTile threads.
// Cost removed: 31 of 32 global loads.
// Still limits it: both operands of every multiply-add are loaded from shared memory (counters: 78
// % busy). It is not busier because all threads wait for the loads, then all compute.
//
// A thread whose element is out of range must not return, because its block waits for it at the
// barriers. Out-of-range elements of the tiles are zero-filled, so they add nothing to the sums.
__global__ void multiply_tiled(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                               DeviceMatrix<float> c) {
    __shared__ float a_tile[kTile][kTile];
    __shared__ float b_tile[kTile][kTile];
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = blockIdx.y * kTile + ty;
    const std::size_t col = blockIdx.x * kTile + tx;

    float sum = 0;
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += kTile) {
        a_tile[ty][tx] = row < a.rows() && k0 + tx < a.cols() ? a(row, k0 + tx) : 0.0f;
        b_tile[ty][tx] = k0 + ty < b.rows() && col < b.cols() ? b(k0 + ty, col) : 0.0f;
        __syncthreads();  // the tiles are complete
        for (int k = 0; k < kTile; ++k)
            sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();  // all reads are done: the tiles are safe to overwrite
    }
    if (row < c.rows() && col < c.cols()) c(row, col) = sum;
}

inline void launch_tiled(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                         cudaStream_t stream) {
    const dim3 block(kTile, kTile);
    multiply_tiled<<<grid_over(c, kTile, kTile), block, 0, stream>>>(a, b, c);
}

constexpr int kCoarse = 4;  // elements of C per thread

// Idea: thread coarsening. A thread computes kCoarse elements of its row, kTile columns apart. An
// element of A, loaded once into a register, serves all of them.
// Cost removed: three of four loads of A, from shared and from global memory.
// Still limits it: B is still loaded once per multiply-add, from shared memory (counters: 86 %
// busy, DRAM 4 %). The ladder (gemm_ladder/) keeps tiles of both in registers.
__global__ void multiply_coarsened(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                   DeviceMatrix<float> c) {
    __shared__ float a_tile[kTile][kTile];
    __shared__ float b_tile[kTile][kTile * kCoarse];
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = blockIdx.y * kTile + ty;
    const std::size_t first_col = blockIdx.x * kTile * kCoarse + tx;

    float sum[kCoarse] = {};  // of the columns first_col + i * kTile
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += kTile) {
        a_tile[ty][tx] = k0 + tx < a.cols() && row < a.rows() ? a(row, k0 + tx) : 0.0f;
        for (int i = 0; i < kCoarse; ++i) {
            const std::size_t col = first_col + i * kTile;
            b_tile[ty][tx + i * kTile] = k0 + ty < b.rows() && col < b.cols() ? b(k0 + ty, col) : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < kTile; ++k) {
            const float a_value = a_tile[ty][k];
            for (int i = 0; i < kCoarse; ++i)
                sum[i] += a_value * b_tile[k][tx + i * kTile];
        }
        __syncthreads();
    }
    for (int i = 0; i < kCoarse; ++i) {
        const std::size_t col = first_col + i * kTile;
        if (row < c.rows() && col < c.cols()) c(row, col) = sum[i];
    }
}

inline void launch_coarsened(DeviceMatrix<const float> a, DeviceMatrix<const float> b, DeviceMatrix<float> c,
                             cudaStream_t stream) {
    const dim3 block(kTile, kTile);
    multiply_coarsened<<<grid_over(c, kTile, kTile * kCoarse), block, 0, stream>>>(a, b, c);
}

}  // namespace day05
