// Day 28: convolutional layers.                     PMPP chapter 16 (4th edition), 19 (5th edition)
//
// N images of C channels, K filters. An output is a sum of C x R x S products:
//
//   y[n][k][p][q] = sum over c, r, s of x[n][c][h][w] w[k][c][r][s]
//
// where h = p stride - padding + r and w = q stride - padding + s.
//
//   version          what is new                                 what limits it
//   direct           a thread per output                         instructions: indices, loads
//   direct_tiled     shared memory, eight outputs per thread     instructions; shared memory
//   unrolled         patches become columns; matrix product      two shared loads for each product
//   implicit_tiled   the tile is loaded from the images          two shared loads for each product
//
// Each kernel is followed by its launch. layer.cuh has the shape of a layer. beyond/ has implicit
// GEMM with larger tiles, Winograd's algorithm, tensor cores (day 40) and the gradients. Pooling
// and activations are on day 33.
//
//   ./course run day28                                every version, verified and timed
//   ./course run day28 --program                      program.cu: one layer, from main() to the result
//   ./course inspect day28 --only direct_tiled        bank conflicts, line by line
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "layer.cuh"

namespace day28 {

constexpr int kTile = 16;  // a block of a direct version computes 16 x 16 outputs of a plane

// Idea: a thread per output. Blocks are tiles of a plane along x, filters along y, images along z.
// Cost removed: the four outer loops of the CPU.
// Still limits it: instructions. Two loads and their indices for each product (counters: issue
// slots 88 % busy, ALU 69 %, L1 50 %).
__global__ void conv_direct(const float* x, const float* w, float* y, Shape shape) {
    const int tiles_across = course::ceil_div(shape.q(), kTile);
    const int tile = static_cast<int>(blockIdx.x);
    const int p = tile / tiles_across * kTile + static_cast<int>(threadIdx.y);
    const int q = tile % tiles_across * kTile + static_cast<int>(threadIdx.x);
    const int k = static_cast<int>(blockIdx.y);
    const int n = static_cast<int>(blockIdx.z);
    if (p >= shape.p() || q >= shape.q()) return;

    const float* image = x + n * shape.image();
    const float* filter = w + k * shape.filter();
    float sum = 0;
    for (int c = 0; c < shape.c; ++c)
        for (int r = 0; r < shape.r; ++r)
            for (int s = 0; s < shape.s; ++s)
                sum += padded(image, shape, c, p * shape.stride - shape.padding + r,
                              q * shape.stride - shape.padding + s) *
                       filter[(c * shape.r + r) * shape.s + s];
    y[(n * shape.k + k) * shape.plane() + p * shape.q() + q] = sum;
}

inline void launch_conv_direct(const float* x, const float* w, float* y, const Shape& shape,
                               cudaStream_t stream) {
    const int tiles = course::ceil_div(shape.q(), kTile) * course::ceil_div(shape.p(), kTile);
    const dim3 grid(tiles, shape.k, shape.n);
    conv_direct<<<grid, dim3(kTile, kTile), 0, stream>>>(x, w, y, shape);
}

constexpr int kFilters = 8;  // that a block of direct_tiled applies to its patch

// Rows or columns of the image under 16 outputs with a filter of `extent`.
constexpr __host__ __device__ int patch_extent(int extent, int stride) {
    return (kTile - 1) * stride + extent;
}

// Idea: a block loads the patch of a channel under its 16 x 16 outputs, and applies 8 filters to
// it.
// Cost removed: most global loads. Each element is loaded once for 8 filters.
// Still limits it: instructions, and shared memory, where each product reads a weight (counters:
// issue slots 79 % busy, shared memory 69 %).
__global__ void conv_direct_tiled(const float* x, const float* w, float* y, Shape shape) {
    extern __shared__ float memory[];
    const int rows = patch_extent(shape.r, shape.stride);
    const int cols = patch_extent(shape.s, shape.stride);
    const int filter_size = shape.r * shape.s;
    float* patch = memory;                  // rows x cols of a channel
    float* filters = memory + rows * cols;  // kFilters x R x S of the same channel

    const int tx = static_cast<int>(threadIdx.x);
    const int ty = static_cast<int>(threadIdx.y);
    const int thread = ty * kTile + tx;
    const int tiles_across = course::ceil_div(shape.q(), kTile);
    const int first_p = static_cast<int>(blockIdx.x) / tiles_across * kTile;
    const int first_q = static_cast<int>(blockIdx.x) % tiles_across * kTile;
    const int first_k = static_cast<int>(blockIdx.y) * kFilters;
    const int n = static_cast<int>(blockIdx.z);
    const float* image = x + n * shape.image();

    float sums[kFilters] = {};
    for (int c = 0; c < shape.c; ++c) {
        for (int i = thread; i < rows * cols; i += kTile * kTile)
            patch[i] = padded(image, shape, c, first_p * shape.stride - shape.padding + i / cols,
                              first_q * shape.stride - shape.padding + i % cols);
        for (int i = thread; i < kFilters * filter_size; i += kTile * kTile) {
            const int k = first_k + i / filter_size;
            filters[i] = k < shape.k ? w[(k * shape.c + c) * filter_size + i % filter_size] : 0.0f;
        }
        __syncthreads();  // patch and filters are complete
        for (int r = 0; r < shape.r; ++r)
            for (int s = 0; s < shape.s; ++s) {
                const float value = patch[(ty * shape.stride + r) * cols + tx * shape.stride + s];
#pragma unroll
                for (int f = 0; f < kFilters; ++f)
                    sums[f] += value * filters[f * filter_size + r * shape.s + s];
            }
        __syncthreads();  // safe to overwrite
    }
    const int p = first_p + ty;
    const int q = first_q + tx;
    if (p >= shape.p() || q >= shape.q()) return;
#pragma unroll
    for (int f = 0; f < kFilters; ++f)
        if (first_k + f < shape.k)
            y[(n * shape.k + first_k + f) * shape.plane() + p * shape.q() + q] = sums[f];
}

// Shared memory of a block: the patch, and the weights of 8 filters.
inline std::size_t patch_bytes(const Shape& shape) {
    const std::size_t rows = patch_extent(shape.r, shape.stride);
    const std::size_t cols = patch_extent(shape.s, shape.stride);
    const std::size_t filter_size = std::size_t{1} * shape.r * shape.s;
    return (rows * cols + kFilters * filter_size) * sizeof(float);
}

inline void launch_conv_direct_tiled(const float* x, const float* w, float* y, const Shape& shape,
                                     cudaStream_t stream) {
    const int tiles = course::ceil_div(shape.q(), kTile) * course::ceil_div(shape.p(), kTile);
    const dim3 grid(tiles, course::ceil_div(shape.k, kFilters), shape.n);
    conv_direct_tiled<<<grid, dim3(kTile, kTile), patch_bytes(shape), stream>>>(x, w, y, shape);
}

// --- As a matrix product -------------------------------------------------------------------------

constexpr int kUnrollThreads = 256;

// Idea: write the C x R x S inputs of each output into a column. Then the layer is a matrix
// product: K x CRS filters times CRS x PQ columns. A thread writes the R x S elements of one
// channel under one output.
// Cost removed: none yet. But a matrix product is what we know how to make fast.
// Still limits it: instructions for the indices (counters: issue slots 87 % busy). Memory, to which
// an element is written R x S times, is 58 % busy.
__global__ void conv_unroll(const float* x, float* unrolled, Shape shape) {
    const int i = static_cast<int>(blockIdx.x) * kUnrollThreads + static_cast<int>(threadIdx.x);
    const int n = static_cast<int>(blockIdx.z);
    if (i >= shape.c * shape.plane()) return;
    const int c = i / shape.plane();
    const int pixel = i % shape.plane();
    const int row = pixel / shape.q() * shape.stride - shape.padding;
    const int col = pixel % shape.q() * shape.stride - shape.padding;
    const float* image = x + n * shape.image();
    float* column =
        unrolled + (static_cast<std::size_t>(n) * shape.c + c) * shape.r * shape.s * shape.plane();
    for (int r = 0; r < shape.r; ++r)
        for (int s = 0; s < shape.s; ++s)
            column[(r * shape.s + s) * shape.plane() + pixel] = padded(image, shape, c, row + r, col + s);
}

constexpr int kMatrixTile = 32;

// The second half of `unrolled`: y = W U for each image, with the tiles of day 5. A thread computes
// one element; a block of 32 x 32 threads loads 32 x 32 elements of both operands at a time.
__global__ void conv_matmul_tiled(const float* w, const float* unrolled, float* y, Shape shape) {
    __shared__ float w_tile[kMatrixTile][kMatrixTile];
    __shared__ float u_tile[kMatrixTile][kMatrixTile];
    const int tx = static_cast<int>(threadIdx.x);
    const int ty = static_cast<int>(threadIdx.y);
    const int pixel = static_cast<int>(blockIdx.x) * kMatrixTile + tx;
    const int k = static_cast<int>(blockIdx.y) * kMatrixTile + ty;
    const int n = static_cast<int>(blockIdx.z);
    const int depth = shape.filter();
    const float* u = unrolled + static_cast<std::size_t>(n) * depth * shape.plane();

    float sum = 0;
    for (int first = 0; first < depth; first += kMatrixTile) {
        w_tile[ty][tx] = k < shape.k && first + tx < depth ? w[k * depth + first + tx] : 0.0f;
        u_tile[ty][tx] =
            first + ty < depth && pixel < shape.plane() ? u[(first + ty) * shape.plane() + pixel] : 0.0f;
        __syncthreads();  // the tiles are complete
        for (int i = 0; i < kMatrixTile; ++i)
            sum += w_tile[ty][i] * u_tile[i][tx];
        __syncthreads();  // safe to overwrite
    }
    if (k < shape.k && pixel < shape.plane()) y[(n * shape.k + k) * shape.plane() + pixel] = sum;
}

// unrolled: N x C R S x P Q floats.
inline void launch_conv_unrolled(const float* x, const float* w, float* y, float* unrolled,
                                 const Shape& shape, cudaStream_t stream) {
    const dim3 columns(course::ceil_div(shape.c * shape.plane(), kUnrollThreads), 1, shape.n);
    conv_unroll<<<columns, kUnrollThreads, 0, stream>>>(x, unrolled, shape);
    const dim3 tiles(course::ceil_div(shape.plane(), kMatrixTile), course::ceil_div(shape.k, kMatrixTile),
                     shape.n);
    conv_matmul_tiled<<<tiles, dim3(kMatrixTile, kMatrixTile), 0, stream>>>(w, unrolled, y, shape);
}

// Idea: the same product, but a block builds each tile of the unrolled matrix in shared memory,
// where it is needed. Only the load differs: element (row, pixel) of U is element (c, r, s) under
// that pixel.
// Cost removed: the memory of the unrolled matrix, and its traffic.
// Still limits it: shared memory, by two loads for each product, as in day 5 (counters: 64 % busy,
// FMA 27 %).
__global__ void conv_implicit_tiled(const float* x, const float* w, float* y, Shape shape) {
    __shared__ float w_tile[kMatrixTile][kMatrixTile];
    __shared__ float u_tile[kMatrixTile][kMatrixTile];
    const int tx = static_cast<int>(threadIdx.x);
    const int ty = static_cast<int>(threadIdx.y);
    const int pixel = static_cast<int>(blockIdx.x) * kMatrixTile + tx;
    const int k = static_cast<int>(blockIdx.y) * kMatrixTile + ty;
    const int n = static_cast<int>(blockIdx.z);
    const int depth = shape.filter();
    const float* image = x + n * shape.image();
    const int top = pixel / shape.q() * shape.stride - shape.padding;
    const int left = pixel % shape.q() * shape.stride - shape.padding;

    float sum = 0;
    for (int first = 0; first < depth; first += kMatrixTile) {
        w_tile[ty][tx] = k < shape.k && first + tx < depth ? w[k * depth + first + tx] : 0.0f;
        const int row = first + ty;
        const int c = row / (shape.r * shape.s);
        const int r = row / shape.s % shape.r;
        const int s = row % shape.s;
        u_tile[ty][tx] =
            row < depth && pixel < shape.plane() ? padded(image, shape, c, top + r, left + s) : 0.0f;
        __syncthreads();  // the tiles are complete
        for (int i = 0; i < kMatrixTile; ++i)
            sum += w_tile[ty][i] * u_tile[i][tx];
        __syncthreads();  // safe to overwrite
    }
    if (k < shape.k && pixel < shape.plane()) y[(n * shape.k + k) * shape.plane() + pixel] = sum;
}

inline void launch_conv_implicit_tiled(const float* x, const float* w, float* y, const Shape& shape,
                                       cudaStream_t stream) {
    const dim3 tiles(course::ceil_div(shape.plane(), kMatrixTile), course::ceil_div(shape.k, kMatrixTile),
                     shape.n);
    conv_implicit_tiled<<<tiles, dim3(kMatrixTile, kMatrixTile), 0, stream>>>(x, w, y, shape);
}

}  // namespace day28
