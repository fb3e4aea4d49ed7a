// Day 33: the shapes of layers and of pooling, for host and device.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace day33 {

inline constexpr int kDigitSide = 28;  // rows and columns of an image
inline constexpr int kPixels = kDigitSide * kDigitSide;
inline constexpr int kScores = 10;  // one per digit

// A convolutional layer of this network: filters are r x r, and the stride is 1.
struct LayerShape {
    int n = 1;        // images
    int c = 1;        // channels of an image
    int h = 1;        // rows of a channel
    int w = 1;        // columns of a channel
    int k = 1;        // filters: channels of the output
    int r = 1;        // rows and columns of a filter
    int padding = 0;  // rows and columns of zeros on each side of an image

    constexpr __host__ __device__ int p() const { return h + 2 * padding - r + 1; }  // rows of the output
    constexpr __host__ __device__ int q() const { return w + 2 * padding - r + 1; }  // columns
    constexpr __host__ __device__ int plane() const { return p() * q(); }
    constexpr __host__ __device__ int filter() const { return c * r * r; }
    constexpr std::size_t weights() const { return static_cast<std::size_t>(k) * filter(); }
    constexpr std::size_t outputs() const { return static_cast<std::size_t>(n) * k * plane(); }
    constexpr std::size_t inputs() const { return static_cast<std::size_t>(n) * c * h * w; }
};

// N x K planes of `plane` elements.
struct Channels {
    int n = 1;
    int k = 1;
    int plane = 1;

    constexpr std::size_t elements() const { return static_cast<std::size_t>(n) * k * plane; }
};

// Windows of window x window elements over planes of h x w. A tensor of N x C planes in NCHW is a
// row of N C planes.
struct PoolShape {
    int planes = 1;
    int h = 1;
    int w = 1;
    int window = 2;
    int padding = 0;  // at most half a window, so each window has an element of the plane
    int stride = 2;

    constexpr __host__ __device__ int p() const { return (h + 2 * padding - window) / stride + 1; }
    constexpr __host__ __device__ int q() const { return (w + 2 * padding - window) / stride + 1; }
    constexpr std::size_t inputs() const { return static_cast<std::size_t>(planes) * h * w; }
    constexpr std::size_t outputs() const { return static_cast<std::size_t>(planes) * p() * q(); }
};

}  // namespace day33
