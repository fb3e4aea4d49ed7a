// Day 28: the shape of a convolutional layer, and how a kernel reads an image.
#pragma once

#include <cuda_runtime.h>

namespace day28 {

// The letters are those of cuDNN's manual.
struct Shape {
    int n = 1;        // images
    int c = 1;        // channels of an image
    int h = 1;        // rows of a channel
    int w = 1;        // columns of a channel
    int k = 1;        // filters: channels of the output
    int r = 1;        // rows of a filter
    int s = 1;        // columns of a filter
    int padding = 0;  // rows and columns of zeros on each of the four sides of an image
    int stride = 1;   // steps of a filter, along rows and columns

    // Rows and columns of the output: how often the filter fits into the padded image.
    constexpr __host__ __device__ int p() const { return (h + 2 * padding - r) / stride + 1; }
    constexpr __host__ __device__ int q() const { return (w + 2 * padding - s) / stride + 1; }

    // Elements of an image, of a filter, of an image of the output.
    constexpr __host__ __device__ int image() const { return c * h * w; }
    constexpr __host__ __device__ int filter() const { return c * r * s; }
    constexpr __host__ __device__ int plane() const { return p() * q(); }

    bool operator==(const Shape&) const = default;
};

// Element (row, col) of channel c of an image; 0 in the padding around it.
__device__ inline float padded(const float* image, const Shape& shape, int c, int row, int col) {
    const bool inside = row >= 0 && row < shape.h && col >= 0 && col < shape.w;
    return inside ? image[(c * shape.h + row) * shape.w + col] : 0.0f;
}

}  // namespace day28
