// Day 33, beyond: two more kernels for the step of 34 launches.
//
//   version            what is new
//   skipped_products   weights of a convolution: only the outputs that were a maximum
//   warp_sums          outputs of a fully connected layer: a warp for each
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/block_reduce.cuh"
#include "common/device/grid.hpp"
#include "common/device/warp.cuh"
#include "lenet_training.cuh"
#include "shapes.hpp"

namespace day33 {

// Idea: of the four outputs under a 2 x 2 maximum, three have the gradient 0. A thread takes a
// window, and `place` says which of its outputs counts.
// Cost removed: three quarters of the products.
// Still limits it: latency (counters: no unit above 45 %, and 46 % of the warps that an SM could
// hold).
__global__ void pooled_weight_gradient(const float* x, const float* dy, const std::uint8_t* place, float* dw,
                                       LayerShape shape) {
    const int weight = static_cast<int>(blockIdx.x);
    const int s = weight % shape.r;
    const int r = weight / shape.r % shape.r;
    const int c = weight / (shape.r * shape.r) % shape.c;
    const int k = weight / shape.filter();
    const int down = shape.p() / 2;  // windows of a plane: down x across
    const int across = shape.q() / 2;
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < shape.n * down * across; i += kNetThreads) {
        const int image = i / (down * across);
        const int at = place[(image * shape.k + k) * down * across + i % (down * across)];
        const int p = i / across % down * 2 + at / 2;
        const int q = i % across * 2 + at % 2;
        const int row = p + r - shape.padding;
        const int col = q + s - shape.padding;
        if (row < 0 || row >= shape.h || col < 0 || col >= shape.w) continue;
        sum += x[((image * shape.c + c) * shape.h + row) * shape.w + col] *
               dy[((image * shape.k + k) * shape.p() + p) * shape.q() + q];
    }
    sum = course::block_reduce<kNetThreads>(sum, course::Sum{});
    if (threadIdx.x == 0) dw[weight] = sum;
}

inline void launch_pooled_weight_gradient(const float* x, const float* dy, const std::uint8_t* place,
                                          float* dw, const LayerShape& shape, cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(shape.weights());
    pooled_weight_gradient<<<grid, kNetThreads, 0, stream>>>(x, dy, place, dw, shape);
}

// Idea: a warp per output of a fully connected layer. Its lanes share the C products of the sum.
// Cost removed: sums of up to 400 products in one thread. A load of w is 32 adjacent weights; in
// layer_forward it is 32 rows of w, a sector each.
// Still limits it: latency (counters: warps wait for loads 39 % of their time, and no unit is above
// 26 %). A warp has at most 13 products per lane, then the five steps of the sum.
__global__ void warp_forward(const float* x, const float* w, float* y, LayerShape shape) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int i = thread_of_grid() / course::kWarpSize;  // image, filter
    if (i >= shape.n * shape.k) return;
    const float* const inputs = x + i / shape.k * shape.c;
    const float* const weights = w + i % shape.k * shape.c;
    float sum = 0;
    for (int c = lane; c < shape.c; c += course::kWarpSize)
        sum += inputs[c] * weights[c];
    sum = course::warp_reduce(sum, course::Sum{});
    if (lane == 0) y[i] = sum;
}

// The layer is fully connected: images of one pixel, filters of 1 x 1.
inline void launch_warp_forward(const float* x, const float* w, float* y, const LayerShape& shape,
                                cudaStream_t stream) {
    const unsigned grid = course::blocks_for(shape.outputs() * course::kWarpSize, kNetThreads);
    warp_forward<<<grid, kNetThreads, 0, stream>>>(x, w, y, shape);
}

}  // namespace day33
