// Day 28, beyond: Winograd's convolution, for filters of 3 x 3 and stride 1.
//
// F(m x m, 3 x 3) computes m x m outputs from (m + 2) x (m + 2) inputs d and a filter g:
//
//   Y = A^T [ (G g G^T) * (B^T d B) ] A           *: element by element
//
// That takes (m + 2)^2 products where the definition takes 9 m^2: 16 for 36 with m = 2, 36 for 144
// with m = 4. Summed over the channels, each of the (m + 2)^2 elements is a matrix product of its
// own: K x C times C x tiles. The transforms of filters and inputs are made once, for all products.
//
// The matrices are in winograd_matrices.hpp.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/grid.hpp"
#include "layer.cuh"
#include "tile_product.cuh"
#include "winograd_matrices.hpp"

namespace day28 {

// sum += coefficient * value, for a coefficient that the compiler knows: 0 costs nothing, and 1 and
// -1 need no product.
__device__ inline void add_scaled(float& sum, float coefficient, float value) {
    if (coefficient == 1) {
        sum += value;
    } else if (coefficient == -1) {
        sum -= value;
    } else if (coefficient != 0) {
        sum += coefficient * value;
    }
}

// Sizes of the intermediate matrices: whole tiles of the matrix product.
struct WinogradSizes {
    int across;    // tiles of m x m outputs in a row of a plane
    int of_image;  // tiles of a plane
    int channels;  // C, rounded up
    int filters;   // K, rounded up
    int tiles;     // N x of_image, rounded up
};
inline WinogradSizes winograd_sizes(const Shape& shape, int m) {
    const int across = course::ceil_div(shape.q(), m);
    const int of_image = across * course::ceil_div(shape.p(), m);
    return {.across = across,
            .of_image = of_image,
            .channels = round_up(shape.c, Tile::BK),
            .filters = round_up(shape.k, Tile::BM),
            .tiles = round_up(shape.n * of_image, Tile::BN)};
}

constexpr int kTransformThreads = 128;

// Idea of the four kernels: products are expensive, sums are cheap. So transform, multiply less,
// and transform back.
// Cost removed: 5 of 9 products with m = 2, 3 of 4 with m = 4.
// Still limits it: multiply-adds in the products (counters: FMA 60 % busy), which take a little
// more than half of the time. In the transforms V and M go through memory, (m + 2)^2 / m^2 times
// the size of x and y each: 4 with m = 2, 2.25 with m = 4. With larger m they lose too many digits.
// The kernel below is a launch of less than 5 us.
//
// The first kernel: U = G g G^T of each filter and channel. Element e of all of them is a matrix of
// its own:
//   u   (m + 2)^2 x channels x filters
// A thread has the filter k of a channel.
template <int m>
__global__ void winograd_filters(const float* w, float* u, Shape shape, WinogradSizes sizes) {
    using W = Winograd<m>;
    constexpr int kSide = m + 2;
    const int k = static_cast<int>(blockIdx.x) * kTransformThreads + static_cast<int>(threadIdx.x);
    const int c = static_cast<int>(blockIdx.y);
    if (k >= sizes.filters) return;
    const bool inside = c < shape.c && k < shape.k;
    const float* g = w + (k * shape.c + c) * 9;

    float half_way[kSide][3];  // G g
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
        for (int s = 0; s < 3; ++s) {
            half_way[i][s] = 0;
#pragma unroll
            for (int r = 0; r < 3; ++r)
                add_scaled(half_way[i][s], W::g(i, r), inside ? g[r * 3 + s] : 0.0f);
        }
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
        for (int j = 0; j < kSide; ++j) {
            float sum = 0;
#pragma unroll
            for (int s = 0; s < 3; ++s)
                add_scaled(sum, W::g(j, s), half_way[i][s]);
            u[(static_cast<std::size_t>(i * kSide + j) * sizes.channels + c) * sizes.filters + k] = sum;
        }
}

template <int m>
void launch_winograd_filters(const float* w, float* u, const Shape& shape, const WinogradSizes& sizes,
                             cudaStream_t stream) {
    const dim3 grid(course::ceil_div(sizes.filters, kTransformThreads), sizes.channels);
    winograd_filters<m><<<grid, kTransformThreads, 0, stream>>>(w, u, shape, sizes);
}

// V = B^T d B of one tile of a channel, element by element: store(element, value).
template <int m, class Store>
__device__ void transform_input(const float* x, const Shape& shape, const WinogradSizes& sizes, int tile,
                                int c, const Store& store) {
    using W = Winograd<m>;
    constexpr int kSide = m + 2;
    const int n = tile / sizes.of_image;
    const bool inside = c < shape.c && n < shape.n;
    const int top = tile % sizes.of_image / sizes.across * m - shape.padding;
    const int left = tile % sizes.across * m - shape.padding;
    const float* image = x + static_cast<std::ptrdiff_t>(n) * shape.image();

    float d[kSide][kSide];
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
        for (int j = 0; j < kSide; ++j)
            d[i][j] = inside ? padded(image, shape, c, top + i, left + j) : 0.0f;

    float half_way[kSide][kSide];  // B^T d
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
        for (int j = 0; j < kSide; ++j) {
            half_way[i][j] = 0;
#pragma unroll
            for (int l = 0; l < kSide; ++l)
                add_scaled(half_way[i][j], W::bt(i, l), d[l][j]);
        }
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
        for (int j = 0; j < kSide; ++j) {
            float sum = 0;
#pragma unroll
            for (int l = 0; l < kSide; ++l)
                add_scaled(sum, W::bt(j, l), half_way[i][l]);
            store(i * kSide + j, sum);
        }
}

// V = B^T d B of each tile and channel:
//   v   (m + 2)^2 x channels x tiles
// A thread has one tile of a channel. Tiles overlap by two rows and columns.
template <int m>
__global__ void __launch_bounds__(kTransformThreads)
    winograd_inputs(const float* x, float* v, Shape shape, WinogradSizes sizes) {
    const int tile = static_cast<int>(blockIdx.x) * kTransformThreads + static_cast<int>(threadIdx.x);
    const int c = static_cast<int>(blockIdx.y);
    if (tile >= sizes.tiles) return;
    transform_input<m>(x, shape, sizes, tile, c, [&](int element, float value) {
        v[(static_cast<std::size_t>(element) * sizes.channels + c) * sizes.tiles + tile] = value;
    });
}

template <int m>
void launch_winograd_inputs(const float* x, float* v, const Shape& shape, const WinogradSizes& sizes,
                            cudaStream_t stream) {
    const dim3 grid(course::ceil_div(sizes.tiles, kTransformThreads), sizes.channels);
    winograd_inputs<m><<<grid, kTransformThreads, 0, stream>>>(x, v, shape, sizes);
}

// M = U^T V, (m + 2)^2 products at once, one for each z of the grid:
//   products   (m + 2)^2 x filters x tiles
// All extents are whole tiles, so there are no bounds checks. The gradient of the filters splits
// the depth in `parts`: then there are as many products of each element, one after the other.
__global__ void __launch_bounds__(Tile::THREADS)
    winograd_multiply(const float* u, const float* v, float* products, WinogradSizes sizes, int parts) {
    __shared__ Stage stages[kStages];
    const int thread = static_cast<int>(threadIdx.x);
    const int first_tile = static_cast<int>(blockIdx.x) * Tile::BN;
    const int first_k = static_cast<int>(blockIdx.y) * Tile::BM;
    const std::size_t product = blockIdx.z;
    const int depth = sizes.channels / parts;
    u += product * depth * sizes.filters;
    v += product * depth * sizes.tiles;
    products += product * sizes.filters * sizes.tiles;

    Sums sums = {};
    sum_products(sums, stages, depth / Tile::BK, [&](int step, Stage& stage) {
        copy_rows_of_a(stage, u, step * Tile::BK, first_k, sizes.filters);
        const int column = thread % 32 * 4;
#pragma unroll
        for (int r = thread / 32; r < Tile::BK; r += Tile::THREADS / 32)
            course::ptx::cp_async_16(
                &stage.b[r][column],
                v + static_cast<std::size_t>(step * Tile::BK + r) * sizes.tiles + first_tile + column);
    });
#pragma unroll
    for (int i = 0; i < Tile::TM; ++i)
#pragma unroll
        for (int j = 0; j < Tile::TN; j += 4)
            four(sums, i, j)
                .store(products + static_cast<std::size_t>(first_k + row_of(i)) * sizes.tiles + first_tile +
                       column_of(j));
}

inline void launch_winograd_multiply(const float* u, const float* v, float* products,
                                     const WinogradSizes& sizes, int elements, int parts,
                                     cudaStream_t stream) {
    const dim3 grid(course::ceil_div(sizes.tiles, Tile::BN), course::ceil_div(sizes.filters, Tile::BM),
                    elements * parts);
    winograd_multiply<<<grid, Tile::THREADS, 0, stream>>>(u, v, products, sizes, parts);
}

// Y = A^T M A, of which the last tile of a row or column of tiles may have fewer than m x m
// outputs. A thread has one tile of a filter. packs: m outputs of a row are one store.
template <int m>
__global__ void __launch_bounds__(kTransformThreads)
    winograd_outputs(const float* products, float* y, Shape shape, WinogradSizes sizes, bool packs) {
    using W = Winograd<m>;
    constexpr int kSide = m + 2;
    const int tile = static_cast<int>(blockIdx.x) * kTransformThreads + static_cast<int>(threadIdx.x);
    const int k = static_cast<int>(blockIdx.y);
    const int n = tile / sizes.of_image;
    if (n >= shape.n) return;

    float half_way[m][kSide];  // A^T M
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
#pragma unroll
        for (int i = 0; i < m; ++i)
            half_way[i][j] = 0;
#pragma unroll
        for (int l = 0; l < kSide; ++l) {
            const float value =
                products[(static_cast<std::size_t>(l * kSide + j) * sizes.filters + k) * sizes.tiles + tile];
#pragma unroll
            for (int i = 0; i < m; ++i)
                add_scaled(half_way[i][j], W::at(i, l), value);
        }
    }
    const int p = tile % sizes.of_image / sizes.across * m;
    const int q = tile % sizes.across * m;
    float* const plane = y + (n * shape.k + k) * shape.plane();
#pragma unroll
    for (int i = 0; i < m; ++i) {
        course::Pack<float, m> row = {};
#pragma unroll
        for (int j = 0; j < m; ++j)
#pragma unroll
            for (int l = 0; l < kSide; ++l)
                add_scaled(row.value[j], W::at(j, l), half_way[i][l]);
        if (p + i >= shape.p()) continue;
        if (packs) {
            row.store(plane + (p + i) * shape.q() + q);
        } else {
#pragma unroll
            for (int j = 0; j < m; ++j)
                if (q + j < shape.q()) plane[(p + i) * shape.q() + q + j] = row.value[j];
        }
    }
}

template <int m>
void launch_winograd_outputs(const float* products, float* y, const Shape& shape, const WinogradSizes& sizes,
                             cudaStream_t stream) {
    const dim3 grid(course::ceil_div(sizes.tiles, kTransformThreads), shape.k);
    const bool packs = shape.q() % m == 0 && course::is_aligned(y, m * sizeof(float));
    winograd_outputs<m><<<grid, kTransformThreads, 0, stream>>>(products, y, shape, sizes, packs);
}

// All four kernels. scratch: U, V, then M.
template <int m>
void launch_winograd(const float* x, const float* w, float* y, float* scratch, const Shape& shape,
                     cudaStream_t stream) {
    constexpr int kElements = (m + 2) * (m + 2);
    const WinogradSizes sizes = winograd_sizes(shape, m);
    const std::size_t columns = std::size_t{kElements} * sizes.channels;
    float* const u = scratch;
    float* const v = u + columns * sizes.filters;
    float* const products = v + columns * sizes.tiles;
    launch_winograd_filters<m>(w, u, shape, sizes, stream);
    launch_winograd_inputs<m>(x, v, shape, sizes, stream);
    launch_winograd_multiply(u, v, products, sizes, kElements, 1, stream);
    launch_winograd_outputs<m>(products, y, shape, sizes, stream);
}

}  // namespace day28
