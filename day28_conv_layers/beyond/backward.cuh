// Day 28, beyond: the gradients of a convolutional layer.
//
//   dx[n][c][h][w] = sum over k, r, s of dy[n][k][p][q] w[k][c][r][s]
//   dw[k][c][r][s] = sum over n, p, q of dy[n][k][p][q] x[n][c][h][w]
//
// where h = p stride - padding + r and w = q stride - padding + s.
//
// dx is again a convolution, of dy; dw is a matrix product with a very long depth.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "common/device/block_reduce.cuh"
#include "common/device/grid.hpp"
#include "layer.cuh"
#include "taps.cuh"
#include "tile_product.cuh"

namespace day28 {

// --- With respect to the input -------------------------------------------------------------------

constexpr int kInputTile = 16;  // a block of input_gradient_direct computes 16 x 16 elements of dx

// Idea: a thread per input element, which gathers from the outputs that used this element. No other
// thread writes it, so no atomic operation is needed.
// Cost removed: the outer loops.
// Still limits it: two loads for each product; and with a stride, most combinations of r and s have
// no output.
__global__ void input_gradient_direct(const float* dy, const float* w, float* dx, Shape shape) {
    const int tiles_across = course::ceil_div(shape.w, kInputTile);
    const int tile = static_cast<int>(blockIdx.x);
    const int row = tile / tiles_across * kInputTile + static_cast<int>(threadIdx.y);
    const int col = tile % tiles_across * kInputTile + static_cast<int>(threadIdx.x);
    const int c = static_cast<int>(blockIdx.y);
    const int n = static_cast<int>(blockIdx.z);
    if (row >= shape.h || col >= shape.w) return;

    float sum = 0;
    for (int k = 0; k < shape.k; ++k)
        for (int r = 0; r < shape.r; ++r)
            for (int s = 0; s < shape.s; ++s) {
                const int down = row + shape.padding - r;  // p * stride
                const int right = col + shape.padding - s;
                if (down < 0 || right < 0 || down % shape.stride != 0 || right % shape.stride != 0) continue;
                const int p = down / shape.stride;
                const int q = right / shape.stride;
                if (p >= shape.p() || q >= shape.q()) continue;
                sum += dy[(n * shape.k + k) * shape.plane() + p * shape.q() + q] *
                       w[(k * shape.c + c) * shape.r * shape.s + r * shape.s + s];
            }
    dx[n * shape.image() + (c * shape.h + row) * shape.w + col] = sum;
}

inline void launch_input_gradient_direct(const float* dy, const float* w, float* dx, const Shape& shape,
                                         cudaStream_t stream) {
    const int tiles = course::ceil_div(shape.w, kInputTile) * course::ceil_div(shape.h, kInputTile);
    const dim3 grid(tiles, shape.c, shape.n);
    input_gradient_direct<<<grid, dim3(kInputTile, kInputTile), 0, stream>>>(dy, w, dx, shape);
}

constexpr int kCopyThreads = 256;

// With a stride t, row h of x was under row r of a filter only if h + padding - r is a multiple of
// t. So (h + padding) % t, the *phase* of h, determines which rows of the filters count: r = phase,
// phase + t, ... The same holds for columns. With stride 1, there is one phase, and all rows count.
struct Phase {
    int row;   // of the filters: the first one that counts
    int col;   // likewise
    int rows;  // how many count
    int cols;
};

// Idea: dx is the convolution of dy with the filters turned by 180 degrees, C and K exchanged, and
// R - 1 - padding zeros around dy. So every kernel for the forward pass computes it, with filters
// that this one writes. With a stride, the elements of dx that have one phase are such a
// convolution, with the rows and columns of the filters that count.
// Cost removed: everything that the forward kernels have removed; and products with the zeros that
// a stride would put between the elements of dy.
// Still limits it: with few channels, as in the first layer, most rows of a tile are empty.
//
// turned  C x K x phase.rows x phase.cols
__global__ void turn_filters(const float* w, float* turned, Shape shape, Phase phase) {
    const int i = static_cast<int>(blockIdx.x) * kCopyThreads + static_cast<int>(threadIdx.x);
    const int taps = phase.rows * phase.cols;
    if (i >= shape.c * shape.k * taps) return;
    const int k = i / taps % shape.k;
    const int c = i / taps / shape.k;
    const int r = phase.row + (phase.rows - 1 - i / phase.cols % phase.rows) * shape.stride;
    const int s = phase.col + (phase.cols - 1 - i % phase.cols) * shape.stride;
    turned[i] = w[((k * shape.c + c) * shape.r + r) * shape.s + s];
}

inline void launch_turn_filters(const float* w, float* turned, const Shape& shape, const Phase& phase,
                                cudaStream_t stream) {
    const int filters = shape.c * shape.k * phase.rows * phase.cols;
    turn_filters<<<course::ceil_div(filters, kCopyThreads), kCopyThreads, 0, stream>>>(w, turned, shape,
                                                                                       phase);
}

// Rows and columns of dx that have a phase. Some of them may be in the padding.
__host__ __device__ inline int rows_of_phase(const Shape& shape) {
    return (shape.h + shape.padding - 1) / shape.stride + 1;
}
__host__ __device__ inline int cols_of_phase(const Shape& shape) {
    return (shape.w + shape.padding - 1) / shape.stride + 1;
}

// Writes the elements of a phase to their places in dx. `of_phase` is the output of the convolution
// `convolved`. It starts convolved.padding - (phase.rows - 1) rows before row 0 of the phase.
// Elements beyond its end were under no filter, so their gradient is 0.
__global__ void place_phase(const float* of_phase, float* dx, Shape shape, Phase phase, Shape convolved) {
    const int i = static_cast<int>(blockIdx.x) * kCopyThreads + static_cast<int>(threadIdx.x);
    const int rows = rows_of_phase(shape);
    const int cols = cols_of_phase(shape);
    if (i >= shape.n * shape.c * rows * cols) return;
    const int plane = i / (rows * cols);
    const int row = i / cols % rows;
    const int col = i % cols;
    const int h = row * shape.stride + phase.row - shape.padding;
    const int w = col * shape.stride + phase.col - shape.padding;
    if (h < 0 || h >= shape.h || w < 0 || w >= shape.w) return;
    const int from_row = row + convolved.padding + 1 - phase.rows;
    const int from_col = col + convolved.padding + 1 - phase.cols;
    const bool exists = from_row < convolved.p() && from_col < convolved.q();
    dx[(plane * shape.h + h) * shape.w + w] =
        exists ? of_phase[plane * convolved.plane() + from_row * convolved.q() + from_col] : 0.0f;
}

inline void launch_place_phase(const float* of_phase, float* dx, const Shape& shape, const Phase& phase,
                               const Shape& convolved, cudaStream_t stream) {
    const int elements = shape.n * shape.c * rows_of_phase(shape) * cols_of_phase(shape);
    place_phase<<<course::ceil_div(elements, kCopyThreads), kCopyThreads, 0, stream>>>(of_phase, dx, shape,
                                                                                       phase, convolved);
}

// --- With respect to the filters -----------------------------------------------------------------

constexpr int kReduceThreads = 128;

// Idea: a block per weight. Its threads share the N x P x Q products.
// Cost removed: the outer loops.
// Still limits it: each block reads a channel of x and one of dy, and many blocks read the same
// channel.
__global__ void weight_gradient_direct(const float* x, const float* dy, float* dw, Shape shape) {
    const int weight = static_cast<int>(blockIdx.x);
    const int s = weight % shape.s;
    const int r = weight / shape.s % shape.r;
    const int c = weight / (shape.r * shape.s) % shape.c;
    const int k = weight / shape.filter();
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < shape.n * shape.plane(); i += kReduceThreads) {
        const int n = i / shape.plane();
        const int pixel = i % shape.plane();
        sum += dy[(n * shape.k + k) * shape.plane() + pixel] *
               padded(x + n * shape.image(), shape, c, pixel / shape.q() * shape.stride - shape.padding + r,
                      pixel % shape.q() * shape.stride - shape.padding + s);
    }
    sum = course::block_reduce<kReduceThreads>(sum, course::Sum{});
    if (threadIdx.x == 0) dw[weight] = sum;
}

inline void launch_weight_gradient_direct(const float* x, const float* dy, float* dw, const Shape& shape,
                                          cudaStream_t stream) {
    weight_gradient_direct<<<shape.k * shape.filter(), kReduceThreads, 0, stream>>>(x, dy, dw, shape);
}

// Idea: dw (K x CRS) = dy (K x NPQ) times the transposed columns (NPQ x CRS), which are read from
// the images. The result is small and the depth is long, so the depth is split over gridDim.z
// (split-K): each part of it gives a partial result, and sum_parts() adds them.
// Cost removed: most loads, because each fragment serves eight products; idle SMs.
// Still limits it: issue slots (counters: 72 % busy, shared memory 71 %) for 4-byte copies, which a
// transposed tile needs; the partial results.
__global__ void __launch_bounds__(Tile::THREADS)
    weight_gradient_split_k(const float* x, const float* dy, float* partial, Shape shape, int steps_of_part) {
    __shared__ Stage stages[kStages];
    __shared__ Tap taps[Tile::BN];
    const int thread = static_cast<int>(threadIdx.x);
    const int first_column = static_cast<int>(blockIdx.x) * Tile::BN;
    const int first_k = static_cast<int>(blockIdx.y) * Tile::BM;
    const int part = static_cast<int>(blockIdx.z);
    const int plane = shape.plane();

    const int crs = first_column + thread;
    const int r = crs / shape.s % shape.r;
    const int s = crs % shape.s;
    taps[thread] = crs < shape.filter()
                       ? Tap{(crs / (shape.r * shape.s) * shape.h + r) * shape.w + s, r, s, 0}
                       : Tap{0, kNowhere, 0, 0};
    __syncthreads();  // the taps are complete

    // A thread copies every 16th row and column of one pixel; eight adjacent threads have eight
    // adjacent pixels.
    constexpr int kRows = Tile::THREADS / Tile::BK;
    const int deep = thread % Tile::BK;
    const int row = thread / Tile::BK;
    const int first_step = part * steps_of_part;
    const int all_steps = course::ceil_div(shape.n * plane, Tile::BK);
    const int first_pixel = first_step * Tile::BK + deep;
    int n = first_pixel / plane;
    int p = first_pixel % plane / shape.q();
    int q = first_pixel % shape.q();

    Sums sums = {};
    sum_products(sums, stages, min(steps_of_part, all_steps - first_step), [&](int, Stage& stage) {
        const bool exists = n < shape.n;
        const float* gradient = dy + n * std::ptrdiff_t{shape.k * plane} + p * shape.q() + q;
#pragma unroll
        for (int i = row; i < row + Tile::BM; i += kRows)
            course::ptx::cp_async_4(&stage.a[deep][i], gradient + (first_k + i) * std::ptrdiff_t{plane},
                                    exists && first_k + i < shape.k);
        const int top = exists ? p * shape.stride - shape.padding : kNowhere;
        const int left = q * shape.stride - shape.padding;
        const float* first = x + n * std::ptrdiff_t{shape.image()} + top * std::ptrdiff_t{shape.w} + left;
#pragma unroll
        for (int j = row; j < row + Tile::BN; j += kRows) {
            const Tap tap = taps[j];
            const bool inside = static_cast<unsigned>(top + tap.r) < static_cast<unsigned>(shape.h) &&
                                static_cast<unsigned>(left + tap.s) < static_cast<unsigned>(shape.w);
            course::ptx::cp_async_4(&stage.b[deep][j], first + tap.offset, inside);
        }
        q += Tile::BK;  // the same pixel of the next step
        while (q >= shape.q()) {
            q -= shape.q();
            if (++p == shape.p()) {
                p = 0;
                ++n;
            }
        }
    });

    float* const result = partial + static_cast<std::size_t>(part) * shape.k * shape.filter();
#pragma unroll
    for (int i = 0; i < Tile::TM; ++i)
#pragma unroll
        for (int j = 0; j < Tile::TN; ++j) {
            const int k = first_k + row_of(i);
            const int column = first_column + column_of(j);
            if (k < shape.k && column < shape.filter()) result[k * shape.filter() + column] = sums[i][j];
        }
}

// The second half of split-K, which adds in a fixed order, so that the same data give the same
// bits. Atomic additions would need no second kernel, but would round differently in each run.
__global__ void sum_parts(const float* partial, float* dw, int count, int parts) {
    const int i = static_cast<int>(blockIdx.x) * kCopyThreads + static_cast<int>(threadIdx.x);
    if (i >= count) return;
    float sum = 0;
    for (int part = 0; part < parts; ++part)
        sum += partial[static_cast<std::size_t>(part) * count + i];
    dw[i] = sum;
}

// The number of parts into which the depth is split. It does not depend on the device, so that all
// devices round alike: enough blocks for a large GPU, but at least 32 steps for each.
struct Parts {
    int count;
    int steps;  // of each part but the last
};
inline Parts parts_of(const Shape& shape) {
    constexpr int kBlocks = 512;
    constexpr int kFewestSteps = 32;
    const int tiles = course::ceil_div(shape.filter(), Tile::BN) * course::ceil_div(shape.k, Tile::BM);
    const int steps = course::ceil_div(shape.n * shape.plane(), Tile::BK);
    const int wanted = std::clamp(kBlocks / tiles, 1, std::max(1, steps / kFewestSteps));
    const int of_part = std::max(1, course::ceil_div(steps, wanted));
    return {std::max(1, course::ceil_div(steps, of_part)), of_part};
}

// partial: parts_of(shape).count times the floats of dw.
inline void launch_weight_gradient_split_k(const float* x, const float* dy, float* dw, float* partial,
                                           const Shape& shape, cudaStream_t stream) {
    const Parts parts = parts_of(shape);
    const int weights = shape.k * shape.filter();
    const dim3 grid(course::ceil_div(shape.filter(), Tile::BN), course::ceil_div(shape.k, Tile::BM),
                    parts.count);
    weight_gradient_split_k<<<grid, Tile::THREADS, 0, stream>>>(x, dy, partial, shape, parts.steps);
    sum_parts<<<course::ceil_div(weights, kCopyThreads), kCopyThreads, 0, stream>>>(partial, dw, weights,
                                                                                    parts.count);
}

}  // namespace day28
