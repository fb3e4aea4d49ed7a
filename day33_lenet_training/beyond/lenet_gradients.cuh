// Day 33, beyond: the gradients of LeNet's layers as functions of a block, in the order in which
// they are needed: from the scores back to the image.
//
// Of the 2 x 2 outputs of a pooling window only the largest has a gradient. `place` is its
// position.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "lenet_layers.cuh"

namespace day33 {

// dx = w^T dy, and 0 where ReLU has made x 0. A thread per input, so that adjacent threads load
// adjacent weights.
template <int kInputs, int kOutputs>
__device__ void connect_back(const float* dy, const float* w, const float* x, float* dx) {
    static_assert(kInputs <= kLearnThreads);
    const int c = static_cast<int>(threadIdx.x);
    if (c >= kInputs) return;
    float sum = 0;
#pragma unroll 20
    for (int k = 0; k < kOutputs; ++k)
        sum += dy[k] * w[k * kInputs + c];
    dx[c] = x[c] > 0 ? sum : 0.0f;
}

// Where the largest output of window i was: dy is its gradient, all others are 0.
struct Largest {
    int row;
    int col;
    __device__ Largest(int p, int q, int place) : row(2 * p + place / 2), col(2 * q + place % 2) {}
};

// The outputs' gradients of the second layer, 10 x 10 for each filter, with 4 zeros on each side:
// as many as a filter of 5 x 5 needs to reach every input.
constexpr int kSpreadSide = Second::kSide + kFilterSide - 1;  // 18
constexpr int kSpreadStride = kSpreadSide + 2;                // fewer bank conflicts
constexpr int kSpreadPlane = kSpreadSide * kSpreadStride;
constexpr int kSpread = Second::kK * kSpreadPlane;

__device__ inline void spread_to_largest(const float* dy, const std::uint8_t* place, float* spread) {
    for (int i = static_cast<int>(threadIdx.x); i < kSpread; i += kLearnThreads) {
        const int k = i / kSpreadPlane;
        const int row = i / kSpreadStride % kSpreadSide - (kFilterSide - 1);
        const int col = i % kSpreadStride - (kFilterSide - 1);
        float value = 0;
        if (row >= 0 && row < 2 * Second::kP && col >= 0 && col < 2 * Second::kP) {
            const int output = (k * Second::kP + row / 2) * Second::kP + col / 2;
            if (place[output] == row % 2 * 2 + col % 2) value = dy[output];
        }
        spread[i] = value;
    }
}

// dx of the second layer: a convolution of the spread gradient with the filters turned by 180
// degrees. A thread has 2 x 2 inputs of a channel.
__device__ inline void convolve_back(const float* spread, const float* w, const float* x, float* dx) {
    constexpr int kTiles = Second::kSide / 2;
    const int i = static_cast<int>(threadIdx.x);
    static_assert(Second::kC * kTiles * kTiles <= kLearnThreads);
    if (i >= Second::kC * kTiles * kTiles) return;
    const int c = i / (kTiles * kTiles);
    const int row = i / kTiles % kTiles * 2;
    const int col = i % kTiles * 2;
    float sums[2][2] = {};
#pragma unroll 1
    for (int k = 0; k < Second::kK; ++k) {
        const float* const corner = spread + k * kSpreadPlane + row * kSpreadStride + col;
        const float* const filter = w + (k * Second::kC + c) * kFilterSize;
        add_channel<kSpreadStride, true>(corner, filter, sums);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int at = (c * Second::kSide + row + j / 2) * Second::kSide + col + j % 2;
        dx[at] = x[at] > 0 ? sums[j / 2][j % 2] : 0.0f;
    }
}

// The weights' gradients of a convolutional layer, for one image. Of the 2 x 2 outputs of a window
// only the largest has a gradient, so a window is 25 products of a filter and a channel, not
// 100. A thread has a row of a filter, five weights, and `kParts` threads share the windows.
// partial: kParts x (weights, biases); add_parts() adds them.
template <class Layer, int kParts>
__device__ void weight_gradient_parts(const float* x, const float* dy, const std::uint8_t* place,
                                      float* partial) {
    constexpr int kRows = Layer::kK * Layer::kC * kFilterSide;
    constexpr int kOfPart = Layer::kP / kParts;  // rows of windows
    static_assert(Layer::kP % kParts == 0 && kRows * kParts <= kLearnThreads);
    const int i = static_cast<int>(threadIdx.x);
    if (i >= kRows * kParts) return;
    const int part = i / kRows;
    const int r = i % kFilterSide;
    const int c = i / kFilterSide % Layer::kC;
    const int k = i % kRows / (kFilterSide * Layer::kC);
    float sums[kFilterSide] = {};
    float bias = 0;
    for (int p = part * kOfPart; p < (part + 1) * kOfPart; ++p)
#pragma unroll
        for (int q = 0; q < Layer::kP; ++q) {
            const int output = (k * Layer::kP + p) * Layer::kP + q;
            const Largest largest(p, q, place[output]);
            const float* const first =
                x + c * Layer::kPlane + (largest.row + r) * Layer::kStride + largest.col;
            bias += dy[output];
#pragma unroll
            for (int s = 0; s < kFilterSide; ++s)
                sums[s] += dy[output] * first[s];
        }
    float* const result = partial + part * (Layer::kWeights + Layer::kK);
#pragma unroll
    for (int s = 0; s < kFilterSide; ++s)
        result[((k * Layer::kC + c) * kFilterSide + r) * kFilterSide + s] = sums[s];
    if (c == 0 && r == 0) result[Layer::kWeights + k] = bias;
}

template <class Layer, int kParts>
__device__ void add_parts(const float* partial, float* weights, float* biases) {
    constexpr int kCount = Layer::kWeights + Layer::kK;
    for (int i = static_cast<int>(threadIdx.x); i < kCount; i += kLearnThreads) {
        float sum = 0;
#pragma unroll
        for (int part = 0; part < kParts; ++part)
            sum += partial[part * kCount + i];
        (i < Layer::kWeights ? weights[i] : biases[i - Layer::kWeights]) = sum;
    }
}

}  // namespace day33
