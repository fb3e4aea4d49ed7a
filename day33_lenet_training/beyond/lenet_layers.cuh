// Day 33, beyond: the shapes of LeNet-5, and its layers as functions of a block. Each layer reads
// its inputs from shared memory and stores its outputs there. lenet_gradients.cuh has their
// gradients.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/device/block_reduce.cuh"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "shapes.hpp"

namespace day33 {

constexpr int kLearnThreads = 512;
constexpr int kFilterSide = 5;
constexpr int kFilterSize = kFilterSide * kFilterSide;

// A convolutional layer with ReLU and 2 x 2 max-pooling. kIn: rows and columns of an input plane,
// its padding included; a row starts kRowStride floats after the one above it.
template <int kChannels, int kIn, int kRowStride, int kFilters>
struct Pooled {
    static constexpr int kC = kChannels;
    static constexpr int kSide = kIn;
    static constexpr int kStride = kRowStride;
    static constexpr int kPlane = kIn * kRowStride;
    static constexpr int kK = kFilters;
    static constexpr int kP = (kIn - kFilterSide + 1) / 2;  // rows and columns of an output plane
    static constexpr int kOutputs = kK * kP * kP;
    static constexpr int kWeights = kK * kC * kFilterSize;
};
// Rows of 32 floats would have all elements of a column in one bank of shared memory: two more.
using First = Pooled<1, kDigitSide + 4, kDigitSide + 4 + 2, 6>;
using Second = Pooled<First::kK, First::kP, First::kP, 16>;
constexpr int kFlat = Second::kOutputs;  // 400
constexpr int kHidden1 = 120;
constexpr int kHidden2 = 84;
constexpr int kScoresPadded = 12;  // whole float4

// Where the parameters begin; their gradients and velocities as well. All are multiples of four.
struct Offsets {
    static constexpr int kWeights1 = 0;
    static constexpr int kBiases1 = kWeights1 + (First::kWeights + 3) / 4 * 4;
    static constexpr int kWeights2 = kBiases1 + (First::kK + 3) / 4 * 4;
    static constexpr int kBiases2 = kWeights2 + Second::kWeights;
    static constexpr int kWeights3 = kBiases2 + Second::kK;
    static constexpr int kBiases3 = kWeights3 + kHidden1 * kFlat;
    static constexpr int kWeights4 = kBiases3 + kHidden1;
    static constexpr int kBiases4 = kWeights4 + kHidden2 * kHidden1;
    static constexpr int kWeights5 = kBiases4 + kHidden2;
    static constexpr int kBiases5 = kWeights5 + kScores * kHidden2;
    static constexpr int kCount = kBiases5 + kScoresPadded;
};
constexpr int kConvParameters = Offsets::kWeights3;

// The input of the second kernel, one row per image.
struct PictureResults {
    float* conv_gradient;  // batch x kConvParameters
    float* flat;           // batch x 400: the inputs of the fully connected layers
    float* hidden1;        // batch x 120
    float* hidden2;        // batch x 84
    float* d_hidden1;      // batch x 120: the gradients of their results, before ReLU
    float* d_hidden2;      // batch x 84
    float* d_scores;       // batch x 12, of which 10 count
};

// A thread convolves in tiles of 2 x 2 outputs. The 6 x 6 inputs under a tile are in registers: 18
// loads and 25 weights for 100 products of a channel. kTurned: the filter is turned by 180 degrees.
template <int kStride, bool kTurned>
__device__ void add_channel(const float* corner, const float* filter, float (&sums)[2][2]) {
    constexpr int kPatch = kFilterSide + 1;
    float patch[kPatch][kPatch];
#pragma unroll
    for (int r = 0; r < kPatch; ++r)
#pragma unroll
        for (int s = 0; s < kPatch; s += 2) {
            const auto two = course::Pack<float, 2>::load(corner + r * kStride + s);
            patch[r][s] = two.value[0];
            patch[r][s + 1] = two.value[1];
        }
#pragma unroll
    for (int r = 0; r < kFilterSide; ++r)
#pragma unroll
        for (int s = 0; s < kFilterSide; ++s) {
            const int at = r * kFilterSide + s;
            const float weight = filter[kTurned ? kFilterSize - 1 - at : at];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                sums[j / 2][j % 2] += weight * patch[r + j / 2][s + j % 2];
        }
}

// A thread has a window of 2 x 2 outputs of a filter. The window's largest output gets bias and
// ReLU; the other three are never stored.
template <class Layer>
__device__ void convolve_and_pool(const float* x, const float* w, const float* bias, float* y,
                                  std::uint8_t* place) {
    for (int i = static_cast<int>(threadIdx.x); i < Layer::kOutputs; i += kLearnThreads) {
        const int k = i / (Layer::kP * Layer::kP);
        const int p = i / Layer::kP % Layer::kP;
        const int q = i % Layer::kP;
        float sums[2][2] = {};
#pragma unroll 1
        for (int c = 0; c < Layer::kC; ++c) {
            const float* const corner = x + c * Layer::kPlane + 2 * p * Layer::kStride + 2 * q;
            const float* const filter = w + (k * Layer::kC + c) * kFilterSize;
            add_channel<Layer::kStride, false>(corner, filter, sums);
        }
        int largest = 0;
#pragma unroll
        for (int j = 1; j < 4; ++j)
            if (sums[j / 2][j % 2] > sums[largest / 2][largest % 2]) largest = j;
        y[i] = fmaxf(sums[largest / 2][largest % 2] + bias[k], 0.0f);
        place[i] = static_cast<std::uint8_t>(largest);
    }
}

// y = w x + bias, then ReLU. A warp has four outputs at a time. Its lanes share their products, so
// that 32 adjacent weights are one load.
template <int kInputs, int kOutputs, bool kRectified>
__device__ void connect(const float* x, const float* w, const float* bias, float* y) {
    constexpr int kAtOnce = 4;
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    for (int first = warp * kAtOnce; first < kOutputs; first += kLearnThreads / course::kWarpSize * kAtOnce) {
        float sums[kAtOnce] = {};
#pragma unroll 4
        for (int c = lane; c < kInputs; c += course::kWarpSize) {
            const float value = x[c];
#pragma unroll
            for (int j = 0; j < kAtOnce; ++j)
                if (first + j < kOutputs) sums[j] += w[(first + j) * kInputs + c] * value;
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
            sums[j] = course::warp_reduce(sums[j], course::Sum{});
            if (lane != j || first + j >= kOutputs) continue;
            const float value = sums[j] + bias[first + j];
            y[first + j] = kRectified ? fmaxf(value, 0.0f) : value;
        }
    }
}

// The first warp: scores become probabilities p, the loss is -log p[label]. Its gradient with
// respect to the scores is p, less 1 at the label, over the batch.
__device__ inline void score_loss(const float* scores, int label, int batch, float* d_scores, float* loss) {
    const int i = static_cast<int>(threadIdx.x);
    if (i >= course::kWarpSize) return;
    const float score = i < kScores ? scores[i] : -INFINITY;
    const float less = score - course::warp_reduce(score, course::Max{});
    const float power = expf(less);  // 0 behind the last score
    const float sum = course::warp_reduce(power, course::Sum{});
    if (i < kScoresPadded)
        d_scores[i] = (power / sum - (i == label ? 1.0f : 0.0f)) / static_cast<float>(batch);
    if (i == label) *loss = logf(sum) - less;
}

}  // namespace day33
