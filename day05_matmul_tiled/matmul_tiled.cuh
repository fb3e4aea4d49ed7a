// Day 5: tiled matrix multiplication, C = A B.     PMPP chapters 3, 5 and 6 (4th and 5th edition)
//
//   version           what is new                               what limits it
//   naive_*           one thread per element of C               uncoalesced loads of A
//   coalesced_*       threadIdx.x is the column, not the row    two global loads per multiply-add
//   tiled_static      tiles of A and B in shared memory         waiting at barriers; shared memory
//   tiled_dynamic     a tile size chosen at run time            its loop is not fully unrolled
//   tiled_prefetch    the next tiles are loaded meanwhile       two shared loads per multiply-add
//   coarsened         four elements of C per thread             one shared load per multiply-add
//
// A is M x K, B is K x N, C is M x N, all row-major. `a(row, k)` is an element of A: a DeviceMatrix
// computes data[row * leading_dimension + k]. The launcher divides a C that is too large for one
// grid, so that 32 bits are enough for blockIdx * kTile. Blocks are square.
//
// Every version does 2 M N K operations. They differ in how many bytes they load for that.
//
//   ./course run day05                                        every version, verified and timed
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
// addresses are a whole row of A apart: one sector of 32 bytes for each thread.
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

// Idea: threadIdx.x is the column. This is the only change.
// Cost removed: uncoalesced loads. The threads of a warp are in one row, so they load the same
// element of A and 32 adjacent elements of B.
// Still limits it: two global loads per multiply-add, and each element is loaded again by every
// thread that needs it.
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

constexpr int kTile = 32;  // rows and columns of a tile; a block has kTile x kTile threads

// Idea: the block loads a tile of A and a tile of B into shared memory. Each element loaded is used
// by kTile threads.
// Cost removed: 31 of 32 global loads.
// Still limits it: all threads wait for the loads, then all compute. Both operands of every
// multiply-add are loaded from shared memory.
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

// Idea: dynamic shared memory. The launcher queries how large a tile can be on the device, so one
// binary fits every GPU.
// Cost removed: a tile size that is fixed before the GPU is known.
// Still limits it: the compiler cannot unroll the inner loop completely, so the index arithmetic
// stays.
__global__ void multiply_tiled_dynamic(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                       DeviceMatrix<float> c) {
    extern __shared__ float tiles[];
    const unsigned tile = blockDim.x;
    float* const a_tile = tiles;                // tile x tile, row after row
    float* const b_tile = tiles + tile * tile;  // tile x tile
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = blockIdx.y * tile + ty;
    const std::size_t col = blockIdx.x * tile + tx;

    float sum = 0;
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += tile) {
        a_tile[ty * tile + tx] = k0 + tx < a.cols() && row < a.rows() ? a(row, k0 + tx) : 0.0f;
        b_tile[ty * tile + tx] = k0 + ty < b.rows() && col < b.cols() ? b(k0 + ty, col) : 0.0f;
        __syncthreads();
        for (unsigned k = 0; k < tile; ++k)
            sum += a_tile[ty * tile + k] * b_tile[k * tile + tx];
        __syncthreads();
    }
    if (row < c.rows() && col < c.cols()) c(row, col) = sum;
}

// Idea: load the next tiles into registers before the arithmetic on these tiles starts, and store
// them in shared memory after it.
// Cost removed: waiting for global memory. The loads overlap with the multiply-adds.
// Still limits it: two shared loads per multiply-add. `tile_limit` measures that limit.
__global__ void multiply_tiled_prefetch(DeviceMatrix<const float> a, DeviceMatrix<const float> b,
                                        DeviceMatrix<float> c) {
    __shared__ float a_tile[kTile][kTile];
    __shared__ float b_tile[kTile][kTile];
    const unsigned tx = threadIdx.x;
    const unsigned ty = threadIdx.y;
    const std::size_t row = blockIdx.y * kTile + ty;
    const std::size_t col = blockIdx.x * kTile + tx;

    float sum = 0;
    float a_next = tx < a.cols() && row < a.rows() ? a(row, tx) : 0.0f;
    float b_next = ty < b.rows() && col < b.cols() ? b(ty, col) : 0.0f;
    for (std::size_t k0 = 0; k0 < a.cols(); k0 += kTile) {
        a_tile[ty][tx] = a_next;
        b_tile[ty][tx] = b_next;
        __syncthreads();
        const std::size_t next = k0 + kTile;  // loaded now, used one iteration later
        a_next = next + tx < a.cols() && row < a.rows() ? a(row, next + tx) : 0.0f;
        b_next = next + ty < b.rows() && col < b.cols() ? b(next + ty, col) : 0.0f;
        for (int k = 0; k < kTile; ++k)
            sum += a_tile[ty][k] * b_tile[k][tx];
        __syncthreads();
    }
    if (row < c.rows() && col < c.cols()) c(row, col) = sum;
}

constexpr int kCoarse = 4;  // elements of C per thread

// Idea: thread coarsening. A thread computes kCoarse elements of its row, kTile columns apart. An
// element of A, loaded once into a register, serves all of them.
// Cost removed: three of four loads of A, from shared and from global memory.
// Still limits it: B is still loaded once per multiply-add. The GEMM ladder keeps tiles of both
// operands in registers.
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

}  // namespace day05
