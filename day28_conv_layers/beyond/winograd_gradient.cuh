// Day 28, beyond: the gradient of the filters by Winograd's algorithm, for filters of 3 x 3 and
// stride 1.
//
// winograd.cuh computes Y = A^T M A with M = U * V, element by element. Backward, each transform is
// transposed, and the chain is followed from its end to its start:
//
//   dM = A dY A^T        of each tile and filter
//   dU = dM * V          summed over all tiles of all images: (m + 2)^2 matrix products
//   dw = G^T dU G        once for each filter and channel
//
// So a tile of m x m outputs takes (m + 2)^2 products where the definition takes 9 m^2: as few as
// forward. The products are deep, N x tiles, and their results small: split-K again.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "winograd.cuh"

namespace day28 {

// Here the depth of a product is the tiles. So the channels are adjacent in memory, and a block has
// 8 of them, 32 bytes, a sector. The other index of a block is the tile.
constexpr int kChannelsOfBlock = 8;
constexpr int kTilesOfBlock = kTransformThreads / kChannelsOfBlock;

// winograd_multiply() calls its depth sizes.channels, and the columns of its results sizes.tiles.
// Here these are the tiles of all images and the channels, both rounded up.

// Enough blocks for a large GPU, and steps enough to fill the pipeline of copies.
constexpr int kGradientBlocks = 600;
constexpr int kFewestGradientSteps = 16;

// The extents of the products, all of them whole tiles of winograd_multiply(); each of the parts
// has as many steps.
template <int m>
struct GradientSizes {
    static constexpr int kElements = (m + 2) * (m + 2);
    WinogradSizes of;
    int parts;

    explicit GradientSizes(const Shape& shape) {
        of.across = course::ceil_div(shape.q(), m);
        of.of_image = of.across * course::ceil_div(shape.p(), m);
        of.filters = round_up(shape.k, Tile::BM);
        of.tiles = round_up(shape.c, Tile::BN);
        // The parts do not depend on the device, so all devices round alike.
        const int results = kElements * (of.filters / Tile::BM) * (of.tiles / Tile::BN);
        const int steps = course::ceil_div(std::max(1, shape.n * of.of_image), Tile::BK);
        parts = std::clamp(course::ceil_div(kGradientBlocks, results), 1,
                           std::max(1, steps / kFewestGradientSteps));
        of.channels = round_up(steps, parts) * Tile::BK;
    }
    std::size_t dm() const { return std::size_t{kElements} * of.channels * of.filters; }
    std::size_t v() const { return std::size_t{kElements} * of.channels * of.tiles; }
    std::size_t du() const { return std::size_t{kElements} * parts * of.filters * of.tiles; }
};

// V, with the channels last:
//   v   (m + 2)^2 x depth x C, rounded up
template <int m>
__global__ void __launch_bounds__(kTransformThreads)
    winograd_inputs_channels_last(const float* x, float* v, Shape shape, WinogradSizes sizes) {
    const int thread = static_cast<int>(threadIdx.x);
    const int c = static_cast<int>(blockIdx.y) * kChannelsOfBlock + thread % kChannelsOfBlock;
    const int tile = static_cast<int>(blockIdx.x) * kTilesOfBlock + thread / kChannelsOfBlock;
    if (tile >= sizes.channels) return;
    transform_input<m>(x, shape, sizes, tile, c, [&](int element, float value) {
        v[(static_cast<std::size_t>(element) * sizes.channels + tile) * sizes.tiles + c] = value;
    });
}

template <int m>
void launch_winograd_inputs_channels_last(const float* x, float* v, const Shape& shape,
                                          const WinogradSizes& sizes, cudaStream_t stream) {
    const dim3 grid(course::ceil_div(sizes.channels, kTilesOfBlock),
                    course::ceil_div(sizes.tiles, kChannelsOfBlock));
    winograd_inputs_channels_last<m><<<grid, kTransformThreads, 0, stream>>>(x, v, shape, sizes);
}

// dM = A dY A^T, likewise:
//   dm   (m + 2)^2 x depth x K, rounded up
template <int m>
__global__ void __launch_bounds__(kTransformThreads)
    winograd_output_gradients(const float* dy, float* dm, Shape shape, WinogradSizes sizes) {
    using W = Winograd<m>;
    constexpr int kSide = m + 2;
    const int thread = static_cast<int>(threadIdx.x);
    const int k = static_cast<int>(blockIdx.y) * kChannelsOfBlock + thread % kChannelsOfBlock;
    const int tile = static_cast<int>(blockIdx.x) * kTilesOfBlock + thread / kChannelsOfBlock;
    if (tile >= sizes.channels) return;
    const int n = tile / sizes.of_image;
    const int p = tile % sizes.of_image / sizes.across * m;
    const int q = tile % sizes.across * m;
    const bool inside = k < shape.k && n < shape.n;
    const float* const plane = dy + static_cast<std::ptrdiff_t>(n * shape.k + k) * shape.plane();

    float half_way[kSide][m] = {};  // A dY
#pragma unroll
    for (int l = 0; l < m; ++l)
#pragma unroll
        for (int j = 0; j < m; ++j) {
            const bool exists = inside && p + l < shape.p() && q + j < shape.q();
            const float value = exists ? plane[(p + l) * shape.q() + q + j] : 0.0f;
#pragma unroll
            for (int i = 0; i < kSide; ++i)
                add_scaled(half_way[i][j], W::at(l, i), value);
        }
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
        for (int j = 0; j < kSide; ++j) {
            float sum = 0;
#pragma unroll
            for (int l = 0; l < m; ++l)
                add_scaled(sum, W::at(l, j), half_way[i][l]);
            dm[(static_cast<std::size_t>(i * kSide + j) * sizes.channels + tile) * sizes.filters + k] = sum;
        }
}

template <int m>
void launch_winograd_output_gradients(const float* dy, float* dm, const Shape& shape,
                                      const WinogradSizes& sizes, cudaStream_t stream) {
    const dim3 grid(course::ceil_div(sizes.channels, kTilesOfBlock),
                    course::ceil_div(sizes.filters, kChannelsOfBlock));
    winograd_output_gradients<m><<<grid, kTransformThreads, 0, stream>>>(dy, dm, shape, sizes);
}

// dw = G^T dU G, of one filter and channel per thread. The parts of dU are added in order, so the
// same data give the same bits.
template <int m>
__global__ void winograd_filter_gradients(const float* du, float* dw, Shape shape, WinogradSizes sizes,
                                          int parts) {
    using W = Winograd<m>;
    constexpr int kSide = m + 2;
    const int c = static_cast<int>(blockIdx.x) * kTransformThreads + static_cast<int>(threadIdx.x);
    const int k = static_cast<int>(blockIdx.y);
    if (c >= shape.c) return;
    const std::size_t product = static_cast<std::size_t>(sizes.filters) * sizes.tiles;
    du += static_cast<std::size_t>(k) * sizes.tiles + c;

    float sums[kSide][kSide] = {};
    for (int part = 0; part < parts; ++part)
#pragma unroll
        for (int i = 0; i < kSide * kSide; ++i)
            sums[i / kSide][i % kSide] += du[(static_cast<std::size_t>(i) * parts + part) * product];

    float half_way[3][kSide] = {};  // G^T dU
#pragma unroll
    for (int r = 0; r < 3; ++r)
#pragma unroll
        for (int j = 0; j < kSide; ++j)
#pragma unroll
            for (int i = 0; i < kSide; ++i)
                add_scaled(half_way[r][j], W::g(i, r), sums[i][j]);
#pragma unroll
    for (int r = 0; r < 3; ++r)
#pragma unroll
        for (int s = 0; s < 3; ++s) {
            float sum = 0;
#pragma unroll
            for (int j = 0; j < kSide; ++j)
                add_scaled(sum, W::g(j, s), half_way[r][j]);
            dw[(k * shape.c + c) * 9 + r * 3 + s] = sum;
        }
}

template <int m>
void launch_winograd_filter_gradients(const float* du, float* dw, const Shape& shape,
                                      const WinogradSizes& sizes, int parts, cudaStream_t stream) {
    const dim3 grid(course::ceil_div(shape.c, kTransformThreads), shape.k);
    winograd_filter_gradients<m><<<grid, kTransformThreads, 0, stream>>>(du, dw, shape, sizes, parts);
}

// All four kernels. scratch: dM, V, then dU.
template <int m>
void launch_winograd_gradient(const float* x, const float* dy, float* dw, float* scratch, const Shape& shape,
                              cudaStream_t stream) {
    const GradientSizes<m> sizes(shape);
    float* const dm = scratch;
    float* const v = dm + sizes.dm();
    float* const du = v + sizes.v();
    launch_winograd_inputs_channels_last<m>(x, v, shape, sizes.of, stream);
    launch_winograd_output_gradients<m>(dy, dm, shape, sizes.of, stream);
    launch_winograd_multiply(dm, v, du, sizes.of, GradientSizes<m>::kElements, sizes.parts, stream);
    launch_winograd_filter_gradients<m>(du, dw, shape, sizes.of, sizes.parts, stream);
}

}  // namespace day28
