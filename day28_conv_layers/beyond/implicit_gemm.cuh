// Day 28, beyond: the convolution as a matrix product that reads its columns from the images.
//
//   y (K x NPQ) = w (K x CRS) times columns (CRS x NPQ)
//
// The columns exist only as tiles in shared memory. Only their sources are precomputed: one Tap for
// each row of the columns, which is the same for all pixels. cuDNN has this algorithm under the
// name IMPLICIT_PRECOMP_GEMM.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "layer.cuh"
#include "taps.cuh"
#include "tile_product.cuh"

namespace day28 {

constexpr int kPackThreads = 256;

// The filters with K as the fastest index, so that a row of a tile is 64 adjacent floats; and the
// taps. Rows and columns that fill up the last tiles are zeros.
//   packed   depth x columns floats: CRS and K rounded up to whole tiles
//   taps     depth
__global__ void pack_filters(const float* w, float* packed, Tap* taps, Shape shape, int depth, int columns) {
    const int i = static_cast<int>(blockIdx.x) * kPackThreads + static_cast<int>(threadIdx.x);
    if (i >= depth * columns) return;
    const int row = i / columns;
    const int k = i % columns;
    const bool inside = row < shape.filter() && k < shape.k;
    packed[i] = inside ? w[k * shape.filter() + row] : 0.0f;
    if (k != 0) return;
    const int c = row / (shape.r * shape.s);
    const int r = row / shape.s % shape.r;
    const int s = row % shape.s;
    taps[row] = row < shape.filter() ? Tap{(c * shape.h + r) * shape.w + s, r, s, 0} : Tap{0, kNowhere, 0, 0};
}

// CRS and K, rounded up to whole tiles.
inline int padded_depth(const Shape& shape) {
    return round_up(shape.filter(), Tile::BK);
}
inline int padded_filters(const Shape& shape) {
    return round_up(shape.k, Tile::BM);
}
inline std::size_t packed_floats(const Shape& shape) {
    return static_cast<std::size_t>(padded_depth(shape)) * padded_filters(shape);
}

inline void launch_pack_filters(const float* w, float* packed, Tap* taps, const Shape& shape,
                                cudaStream_t stream) {
    const int depth = padded_depth(shape);
    const int columns = padded_filters(shape);
    const int grid = course::ceil_div(depth * columns, kPackThreads);
    pack_filters<<<grid, kPackThreads, 0, stream>>>(w, packed, taps, shape, depth, columns);
}

// Stores the tile of y from filter `first_k` and pixel `first_pixel` on. Pixels are counted through
// all images. fours: PQ is a multiple of four and y is aligned, so four pixels are one store.
__device__ inline void store_pixels(const Sums& sums, float* y, const Shape& shape, int first_k,
                                    int first_pixel, bool fours) {
    const int plane = shape.plane();
    const int pixels = shape.n * plane;
#pragma unroll
    for (int j = 0; j < Tile::TN; ++j) {
        const int pixel = first_pixel + column_of(j);
        if (pixel >= pixels || (fours && j % 4 != 0)) continue;
        float* const channel = y + (pixel / plane) * shape.k * plane + pixel % plane;
#pragma unroll
        for (int i = 0; i < Tile::TM; ++i) {
            const int k = first_k + row_of(i);
            if (k >= shape.k) continue;
            if (fours) {
                if (j % 4 == 0) four(sums, i, j).store(channel + k * plane);
            } else {
                channel[k * plane] = sums[i][j];
            }
        }
    }
}

// Idea: a tile of 64 filters x 128 pixels. Each thread copies the column of one pixel, 4 bytes at a
// time. The taps are the same for the whole block, but the place in the image is the thread's own.
// Copies of pixels in the padding are zero-filled.
// Cost removed: seven eighths of the loads from shared memory, because each fragment serves eight
// products; the divisions that find an element; and the latency of copies, which are three stages
// ahead.
// Still limits it: multiply-adds, and 4-byte copies, which pass through L1 (counters: FMA 68 %
// busy, L1 71 %). In NCHW, adjacent pixels are not aligned.
__global__ void __launch_bounds__(Tile::THREADS)
    conv_implicit_gemm(const float* x, const float* packed, const Tap* taps, float* y, Shape shape, int depth,
                       int columns, bool fours) {
    static_assert(Tile::THREADS == Tile::BN, "a thread copies the column of one pixel");
    __shared__ Stage stages[kStages];
    const int thread = static_cast<int>(threadIdx.x);
    const int first_pixel = static_cast<int>(blockIdx.x) * Tile::BN;
    const int first_k = static_cast<int>(blockIdx.y) * Tile::BM;

    // The first element under the filter at this thread's pixel; it may be in the padding.
    const int pixel = first_pixel + thread;
    const int n = pixel / shape.plane();
    const int top = n < shape.n ? pixel % shape.plane() / shape.q() * shape.stride - shape.padding : kNowhere;
    const int left = pixel % shape.q() * shape.stride - shape.padding;
    const float* const first = x + n * std::ptrdiff_t{shape.image()} + top * std::ptrdiff_t{shape.w} + left;

    Sums sums = {};
    sum_products(sums, stages, depth / Tile::BK, [&](int step, Stage& stage) {
        copy_rows_of_a(stage, packed, step * Tile::BK, first_k, columns);
#pragma unroll
        for (int i = 0; i < Tile::BK; ++i) {
            const Tap tap = taps[step * Tile::BK + i];
            const bool inside = static_cast<unsigned>(top + tap.r) < static_cast<unsigned>(shape.h) &&
                                static_cast<unsigned>(left + tap.s) < static_cast<unsigned>(shape.w);
            course::ptx::cp_async_4(&stage.b[i][thread], first + tap.offset, inside);
        }
    });
    store_pixels(sums, y, shape, first_k, first_pixel, fours);
}

// scratch: packed_floats(), then the taps.
inline void launch_conv_implicit_gemm(const float* x, const float* w, float* y, float* scratch,
                                      const Shape& shape, cudaStream_t stream) {
    float* const packed = scratch;
    Tap* const taps = reinterpret_cast<Tap*>(packed + packed_floats(shape));
    launch_pack_filters(w, packed, taps, shape, stream);
    const bool fours = shape.plane() % 4 == 0 && course::is_aligned(y, 16);
    const dim3 grid(course::ceil_div(shape.n * shape.plane(), Tile::BN), course::ceil_div(shape.k, Tile::BM));
    conv_implicit_gemm<<<grid, Tile::THREADS, 0, stream>>>(x, packed, taps, y, shape, padded_depth(shape),
                                                           padded_filters(shape), fours);
}

}  // namespace day28
