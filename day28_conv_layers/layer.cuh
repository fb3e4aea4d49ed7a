// Day 28: code that is shared by the kernels that read images element by element.
#pragma once

#include <cuda_runtime.h>

#include "conv_layers.hpp"

namespace day28 {

constexpr int kTile = 16;  // a block of a direct version computes 16 x 16 results of a plane

// Element (row, col) of channel c of an image; 0 in the padding around it.
__device__ inline float padded(const float* image, const Shape& shape, int c, int row, int col) {
    const bool inside = row >= 0 && row < shape.h && col >= 0 && col < shape.w;
    return inside ? image[(c * shape.h + row) * shape.w + col] : 0.0f;
}

// For implicit_gemm.cuh and backward.cuh: where element (c, r, s) of a filter lies in an image,
// relative to the first element under the filter. It is `offset` elements after it, r rows below it
// and s columns to the right.
struct alignas(16) Tap {
    int offset;
    int r;
    int s;
    int unused;
};

constexpr int kNowhere = -(1 << 28);  // a row that no image has, whatever is added to it

}  // namespace day28
