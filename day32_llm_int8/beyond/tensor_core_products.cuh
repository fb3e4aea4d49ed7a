// Day 32, beyond: the products on tensor cores. separate_kernels has the int8 product in a kernel
// of its own; fused has both products and everything between them in one.
//
//   version            kernels   what is new                                 what limits it
//   separate_kernels   7         the int8 product on tensor cores (day 31)   the outlier product: L1
//   fused              5         scales and outlier columns in registers     the int8 product
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/tile/byte_tile.cuh"
#include "llm_int8.cuh"
#include "multiply_tile.cuh"

namespace day32 {

// multiply_tile<Shape, Sum>(shared, a, w, sums) adds A W^T of a block's tile to `sums`, in int8 or
// in half: the pipeline of day 31 (multiply_tile.cuh).
using ProductShape = course::ByteTileShape<128, 128, 64, 64, 3>;

// Idea: X8 W8^T with mma.m16n8k32, instead of plain_product.
// Cost removed: nearly all of the product's time.
// Still limits it: the rate of mma.sync (counters: tensor cores 65 % busy, memory below 50 %). But
// the sums are written, read, written and read again by the next kernels.
template <class Shape>
__global__ void __launch_bounds__(Shape::THREADS)
    int8_product(DeviceMatrix<const std::int8_t> x8, DeviceMatrix<const std::int8_t> w8,
                 DeviceMatrix<std::int32_t> c, unsigned tiles_m, unsigned tiles_n) {
    extern __shared__ __align__(128) std::byte shared[];
    const course::TileOrigin origin = course::tile_origin<Shape>(tiles_m, tiles_n);
    course::ByteTileSums<Shape, int> sums = {};
    multiply_tile<Shape, int>(shared, course::byte_rows(x8, origin.row), course::byte_rows(w8, origin.col),
                              sums);
    const bool pairs = c.leading_dimension() % 2 == 0 && reinterpret_cast<std::uintptr_t>(c.data()) % 8 == 0;
    course::for_each_pair<Shape>([&](int i, int j, int pair, int row, int col) {
        const int* const sum = &sums[i][j][pair];
        const std::size_t r = origin.row + row;
        const std::size_t s = origin.col + col;
        if (r >= c.rows() || s >= c.cols()) return;
        if (pairs && s + 1 < c.cols()) {
            *reinterpret_cast<int2*>(&c(r, s)) = make_int2(sum[0], sum[1]);
        } else {
            c(r, s) = sum[0];
            if (s + 1 < c.cols()) c(r, s + 1) = sum[1];
        }
    });
}

template <class Shape>
void launch_int8_product(DeviceMatrix<const std::int8_t> x8, DeviceMatrix<const std::int8_t> w8,
                         DeviceMatrix<std::int32_t> c, cudaStream_t stream) {
    const std::size_t tiles_m = course::ceil_div<std::size_t>(c.rows(), Shape::BM);
    const std::size_t tiles_n = course::ceil_div<std::size_t>(c.cols(), Shape::BN);
    const unsigned grid = course::blocks_for(tiles_m * tiles_n, 1);
    course::launch(int8_product<Shape>, {grid, Shape::THREADS, Shape::SHARED, stream}, x8, w8, c,
                   static_cast<unsigned>(tiles_m), static_cast<unsigned>(tiles_n));
}

using FusedShape = course::ByteTileShape<128, 256, 64, 64, 4>;

// Idea: a block multiplies its tile in int8, turns the sums into floats in their registers, and
// continues with the outlier columns: a few more steps of the same loop, in half.
// Cost removed: 16 bytes of memory traffic per result (18 become 2), and two kernels.
// Still limits it: the int8 product, and quantising X before it.
template <class Shape>
__global__ void __launch_bounds__(Shape::THREADS)
    fused_layer(DeviceMatrix<const std::int8_t> x8, const float* x_scale, DeviceMatrix<const std::int8_t> w8,
                const float* w_scale, Outliers outliers, DeviceMatrix<__half> y, unsigned tiles_m,
                unsigned tiles_n) {
    extern __shared__ __align__(128) std::byte shared[];
    const course::TileOrigin origin = course::tile_origin<Shape>(tiles_m, tiles_n);
    course::ByteTileSums<Shape, int> products = {};
    multiply_tile<Shape, int>(shared, course::byte_rows(x8, origin.row), course::byte_rows(w8, origin.col),
                              products);

    course::ByteTileSums<Shape, float> sums;
    course::for_each_pair<Shape>([&](int i, int j, int pair, int row, int col) {
        const std::size_t r = min(origin.row + row, y.rows() - 1);
        for (int k = 0; k < 2; ++k) {
            const std::size_t s = min(origin.col + col + k, y.cols() - 1);
            sums[i][j][pair + k] = static_cast<float>(products[i][j][pair + k]) * x_scale[r] * w_scale[s];
        }
    });

    const std::size_t depth = outliers.padded();
    multiply_tile<Shape, float>(
        shared, course::byte_rows(outliers.x, outliers.pitch, y.rows(), depth, origin.row),
        course::byte_rows(outliers.w, outliers.pitch, y.cols(), depth, origin.col), sums);

    const bool pairs = y.leading_dimension() % 2 == 0 && reinterpret_cast<std::uintptr_t>(y.data()) % 4 == 0;
    course::for_each_pair<Shape>([&](int i, int j, int pair, int row, int col) {
        const float* const sum = &sums[i][j][pair];
        const std::size_t r = origin.row + row;
        const std::size_t s = origin.col + col;
        if (r >= y.rows() || s >= y.cols()) return;
        if (pairs && s + 1 < y.cols()) {
            *reinterpret_cast<__half2*>(&y(r, s)) = __floats2half2_rn(sum[0], sum[1]);
        } else {
            y(r, s) = __half(sum[0]);
            if (s + 1 < y.cols()) y(r, s + 1) = __half(sum[1]);
        }
    });
}

template <class Shape>
void launch_fused_layer(DeviceMatrix<const std::int8_t> x8, const float* x_scale,
                        DeviceMatrix<const std::int8_t> w8, const float* w_scale, Outliers outliers,
                        DeviceMatrix<__half> y, cudaStream_t stream) {
    const std::size_t tiles_m = course::ceil_div<std::size_t>(y.rows(), Shape::BM);
    const std::size_t tiles_n = course::ceil_div<std::size_t>(y.cols(), Shape::BN);
    const unsigned grid = course::blocks_for(tiles_m * tiles_n, 1);
    course::launch(fused_layer<Shape>, {grid, Shape::THREADS, Shape::SHARED, stream}, x8, x_scale, w8,
                   w_scale, outliers, y, static_cast<unsigned>(tiles_m), static_cast<unsigned>(tiles_n));
}

}  // namespace day32
