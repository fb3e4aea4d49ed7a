// Day 33: a training step of LeNet-5 as two kernels.
//
// The layers of LeNet are small. With 64 pictures, launches and the way of the results through
// global memory take longer than the arithmetic. So here a block carries one picture through the
// whole network and back again; what a layer leaves for the next one stays in shared memory.
//
//   learn_picture   a block per picture: forward, loss, backward
//   descend_batch   adds the gradients of the pictures, and moves the parameters
//
// The gradients of convolutional weights are written picture by picture: there are only 2,572. For
// a fully connected layer with 48,000 weights that would be too much. But its gradient is the
// product of two vectors, dy and x: the vectors are written, and the second kernel multiplies.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/block_reduce.cuh"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "digits.hpp"
#include "lenet_training.cuh"

namespace day33 {

constexpr int kLearnThreads = 512;
constexpr int kFilterSide = 5;
constexpr int kFilterSize = kFilterSide * kFilterSide;

// A convolutional layer with ReLU and 2 x 2 max-pooling. kIn: rows and columns of an input plane,
// its padding included; a row begins kRowStride floats after the one above it.
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

// What the second kernel reads of each picture, one row per picture.
struct PictureResults {
    float* conv_gradient;  // batch x kConvParameters
    float* flat;           // batch x 400: the inputs of the fully connected layers
    float* hidden1;        // batch x 120
    float* hidden2;        // batch x 84
    float* d_hidden1;      // batch x 120: the gradients of their results, before ReLU
    float* d_hidden2;      // batch x 84
    float* d_scores;       // batch x 12, of which 10 count
};

// A thread has a window of 2 x 2 outputs of a filter. The 6 x 6 inputs under it are in registers:
// 18 loads and 25 weights for 100 products of a channel. The window's largest output gets bias and
// ReLU; the other three exist nowhere else.
template <class Layer>
__device__ void convolve_and_pool(const float* x, const float* w, const float* bias, float* y,
                                  std::uint8_t* place) {
    constexpr int kPatch = kFilterSide + 1;
    for (int i = static_cast<int>(threadIdx.x); i < Layer::kOutputs; i += kLearnThreads) {
        const int k = i / (Layer::kP * Layer::kP);
        const int p = i / Layer::kP % Layer::kP;
        const int q = i % Layer::kP;
        float sums[2][2] = {};
#pragma unroll 1
        for (int c = 0; c < Layer::kC; ++c) {
            const float* const corner = x + c * Layer::kPlane + 2 * p * Layer::kStride + 2 * q;
            const float* const filter = w + (k * Layer::kC + c) * kFilterSize;
            float patch[kPatch][kPatch];
#pragma unroll
            for (int r = 0; r < kPatch; ++r)
#pragma unroll
                for (int s = 0; s < kPatch; s += 2) {
                    const auto two = course::Pack<float, 2>::load(corner + r * Layer::kStride + s);
                    patch[r][s] = two.value[0];
                    patch[r][s + 1] = two.value[1];
                }
#pragma unroll
            for (int r = 0; r < kFilterSide; ++r)
#pragma unroll
                for (int s = 0; s < kFilterSide; ++s) {
                    const float weight = filter[r * kFilterSide + s];
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        sums[j / 2][j % 2] += weight * patch[r + j / 2][s + j % 2];
                }
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
// that 32 neighbouring weights are one load.
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

// dx = w^T dy, and 0 where ReLU has made x 0. A thread per input: neighbouring threads load
// neighbouring weights.
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
// degrees. A thread has 2 x 2 inputs of a channel, as in convolve_and_pool.
__device__ inline void convolve_back(const float* spread, const float* w, const float* x, float* dx) {
    constexpr int kPatch = kFilterSide + 1;
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
        float patch[kPatch][kPatch];
#pragma unroll
        for (int r = 0; r < kPatch; ++r)
#pragma unroll
            for (int s = 0; s < kPatch; s += 2) {
                const auto two = course::Pack<float, 2>::load(corner + r * kSpreadStride + s);
                patch[r][s] = two.value[0];
                patch[r][s + 1] = two.value[1];
            }
#pragma unroll
        for (int r = 0; r < kFilterSide; ++r)
#pragma unroll
            for (int s = 0; s < kFilterSide; ++s) {
                const float weight = filter[kFilterSize - 1 - (r * kFilterSide + s)];
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    sums[j / 2][j % 2] += weight * patch[r + j / 2][s + j % 2];
            }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int at = (c * Second::kSide + row + j / 2) * Second::kSide + col + j % 2;
        dx[at] = x[at] > 0 ? sums[j / 2][j % 2] : 0.0f;
    }
}

// The weights' gradients of a convolutional layer, for one picture. Of the 2 x 2 outputs of a
// window only the largest has a gradient, so a window is 25 products of a filter and a channel, not
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

// Copies from shared memory, or between any two arrays.
__device__ inline void copy_all(const float* from, float* to, int count) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kLearnThreads)
        to[i] = from[i];
}

// Idea: a block carries a picture through the network, and its gradient back. Each line is a layer.
// Cost removed: 32 of 34 launches, and the global memory between them.
// Still limits it: the barriers between layers, most of which keep only a part of the threads busy.
// With fewer pictures than multiprocessors, the others are idle.
__global__ void __launch_bounds__(kLearnThreads)
    learn_picture(const float* pictures, const int* labels, const unsigned* steps, const float* parameters,
                  float* losses, PictureResults results, int batch, int batches) {
    alignas(16) __shared__ float picture[First::kPlane];
    alignas(16) __shared__ float pooled1[First::kOutputs];
    alignas(16) __shared__ float d_pooled1[First::kOutputs];
    __shared__ float pooled2[kFlat];
    __shared__ float d_pooled2[kFlat];
    __shared__ std::uint8_t place1[First::kOutputs];
    __shared__ std::uint8_t place2[kFlat];
    __shared__ float hidden1[kHidden1];
    __shared__ float hidden2[kHidden2];
    __shared__ float scores[kScores];
    __shared__ float d_hidden1[kHidden1];
    __shared__ float d_hidden2[kHidden2];
    __shared__ float d_scores[kScoresPadded];
    alignas(16) __shared__ float scratch[kSpread];

    const int image = static_cast<int>(blockIdx.x);
    // The counter is in device memory, so every launch of the graph is the same, and still takes
    // the next pictures.
    const std::size_t number =
        static_cast<std::size_t>(*steps % static_cast<unsigned>(batches)) * batch + image;
    for (int i = static_cast<int>(threadIdx.x); i < First::kPlane; i += kLearnThreads) {
        const int row = i / First::kStride - 2;  // 2: the padding
        const int col = i % First::kStride - 2;
        const bool inside = row >= 0 && row < kDigitSide && col >= 0 && col < kDigitSide;
        picture[i] = inside ? pictures[number * kPixels + row * kDigitSide + col] : 0.0f;
    }
    const float* const w1 = parameters + Offsets::kWeights1;
    const float* const w2 = parameters + Offsets::kWeights2;
    const float* const w3 = parameters + Offsets::kWeights3;
    const float* const w4 = parameters + Offsets::kWeights4;
    const float* const w5 = parameters + Offsets::kWeights5;
    __syncthreads();
    convolve_and_pool<First>(picture, w1, parameters + Offsets::kBiases1, pooled1, place1);
    __syncthreads();
    convolve_and_pool<Second>(pooled1, w2, parameters + Offsets::kBiases2, pooled2, place2);
    __syncthreads();
    connect<kFlat, kHidden1, true>(pooled2, w3, parameters + Offsets::kBiases3, hidden1);
    __syncthreads();
    connect<kHidden1, kHidden2, true>(hidden1, w4, parameters + Offsets::kBiases4, hidden2);
    __syncthreads();
    connect<kHidden2, kScores, false>(hidden2, w5, parameters + Offsets::kBiases5, scores);
    __syncthreads();
    score_loss(scores, labels[number], batch, d_scores, losses + image);
    __syncthreads();

    // And back.
    connect_back<kHidden2, kScores>(d_scores, w5, hidden2, d_hidden2);
    __syncthreads();
    connect_back<kHidden1, kHidden2>(d_hidden2, w4, hidden1, d_hidden1);
    __syncthreads();
    connect_back<kFlat, kHidden1>(d_hidden1, w3, pooled2, d_pooled2);
    __syncthreads();
    copy_all(pooled2, results.flat + static_cast<std::size_t>(image) * kFlat, kFlat);
    copy_all(hidden1, results.hidden1 + image * kHidden1, kHidden1);
    copy_all(hidden2, results.hidden2 + image * kHidden2, kHidden2);
    copy_all(d_hidden1, results.d_hidden1 + image * kHidden1, kHidden1);
    copy_all(d_hidden2, results.d_hidden2 + image * kHidden2, kHidden2);
    copy_all(d_scores, results.d_scores + image * kScoresPadded, kScoresPadded);
    float* const gradient = results.conv_gradient + static_cast<std::size_t>(image) * kConvParameters;

    weight_gradient_parts<Second, 1>(pooled1, d_pooled2, place2, scratch);
    __syncthreads();
    add_parts<Second, 1>(scratch, gradient + Offsets::kWeights2, gradient + Offsets::kBiases2);
    __syncthreads();
    spread_to_largest(d_pooled2, place2, scratch);
    __syncthreads();
    convolve_back(scratch, w2, pooled1, d_pooled1);
    __syncthreads();
    weight_gradient_parts<First, First::kP>(picture, d_pooled1, place1, scratch);
    __syncthreads();
    add_parts<First, First::kP>(scratch, gradient + Offsets::kWeights1, gradient + Offsets::kBiases1);
}

// --- The sum over the batch ----------------------------------------------------------------------

// Gradient descent with momentum.
struct Descent {
    float* parameters;
    float* velocity;
    float* gradient;
    float rate;
    float momentum;
    bool moves;  // false: the gradient is computed, the parameters stay

    __device__ void move(int i, float slope) const {
        gradient[i] = slope;
        if (!moves) return;
        velocity[i] = momentum * velocity[i] - rate * slope;
        parameters[i] += velocity[i];
    }
};

constexpr int kBatchWarps = 16;  // of a block; they share the pictures
constexpr int kBatchRows = 4;
using OfWarps = float[kBatchWarps][kBatchRows][course::kWarpSize];

// The sum over the warps, always in the same order: so the same data give the same bits.
__device__ inline float add_warps(const OfWarps& of_warp, int row, int lane) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kBatchWarps; ++warp)
        sum += of_warp[warp][row][lane];
    return sum;
}

// 32 convolutional parameters: their gradients are there, one row per picture.
__device__ inline void descend_convolution(const Descent& descent, const PictureResults& results, int batch,
                                           int block, OfWarps& of_warp) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const int i = block * course::kWarpSize + lane;
    // Parts begin at multiples of four; between them there may be gaps.
    const bool exists = i < First::kWeights ||
                        (i >= Offsets::kBiases1 && i < Offsets::kBiases1 + First::kK) ||
                        (i >= Offsets::kWeights2 && i < kConvParameters);
    float sum = 0;
#pragma unroll 4
    for (int image = warp; image < batch; image += kBatchWarps)
        if (exists) sum += results.conv_gradient[static_cast<std::size_t>(image) * kConvParameters + i];
    of_warp[warp][0][lane] = sum;
    __syncthreads();
    if (warp == 0 && exists) descent.move(i, add_warps(of_warp, 0, lane));
}

// 4 rows x 32 columns of a fully connected layer's gradient: the sum over the pictures of dy[row]
// x[column]. Behind the last column come the biases, as weights of an input that is always 1.
template <int kInputs, int kOutputs, int kOutputStride>
__device__ void descend_connected(const Descent& descent, const float* x, const float* dy, int weights,
                                  int biases, int batch, int block, OfWarps& of_warp) {
    static_assert(kOutputStride % kBatchRows == 0);
    constexpr int kAcross = kInputs / course::kWarpSize + 1;
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const int column = block % kAcross * course::kWarpSize + lane;
    const int first_row = block / kAcross * kBatchRows;
    float sums[kBatchRows] = {};
#pragma unroll 4
    for (int image = warp; image < batch; image += kBatchWarps) {
        const float value = column < kInputs ? x[static_cast<std::size_t>(image) * kInputs + column] : 1.0f;
        const auto rows = course::Pack<float, kBatchRows>::load(dy + image * kOutputStride + first_row);
#pragma unroll
        for (int j = 0; j < kBatchRows; ++j)
            sums[j] += rows.value[j] * value;
    }
#pragma unroll
    for (int j = 0; j < kBatchRows; ++j)
        of_warp[warp][j][lane] = sums[j];
    __syncthreads();
    const int row = first_row + warp;
    if (warp >= kBatchRows || row >= kOutputs || column > kInputs) return;
    descent.move(column < kInputs ? weights + row * kInputs + column : biases + row,
                 add_warps(of_warp, warp, lane));
}

// Blocks of descend_batch for each part.
constexpr int blocks_of_connected(int inputs, int outputs) {
    return (inputs / course::kWarpSize + 1) * ((outputs + kBatchRows - 1) / kBatchRows);
}
constexpr int kConvBlocks = (kConvParameters + course::kWarpSize - 1) / course::kWarpSize;
constexpr int kBlocks3 = blocks_of_connected(kFlat, kHidden1);
constexpr int kBlocks4 = blocks_of_connected(kHidden1, kHidden2);
constexpr int kBlocks5 = blocks_of_connected(kHidden2, kScores);
constexpr int kDescendBlocks = kConvBlocks + kBlocks3 + kBlocks4 + kBlocks5;

// Idea: one launch for all parameters. A block has 32 or 128 of them; its warps share the pictures.
// Cost removed: the weights' gradients in global memory, and a launch for each layer.
// Still limits it: latency. With 64 pictures, a warp adds four products.
__global__ void __launch_bounds__(kBatchWarps* course::kWarpSize)
    descend_batch(Descent descent, PictureResults results, unsigned* steps, int batch) {
    __shared__ OfWarps of_warp;
    int block = static_cast<int>(blockIdx.x);
    if (block == 0 && threadIdx.x == 0 && descent.moves) ++*steps;
    if (block < kBlocks3)
        return descend_connected<kFlat, kHidden1, kHidden1>(descent, results.flat, results.d_hidden1,
                                                            Offsets::kWeights3, Offsets::kBiases3, batch,
                                                            block, of_warp);
    block -= kBlocks3;
    if (block < kBlocks4)
        return descend_connected<kHidden1, kHidden2, kHidden2>(descent, results.hidden1, results.d_hidden2,
                                                               Offsets::kWeights4, Offsets::kBiases4, batch,
                                                               block, of_warp);
    block -= kBlocks4;
    if (block < kBlocks5)
        return descend_connected<kHidden2, kScores, kScoresPadded>(descent, results.hidden2, results.d_scores,
                                                                   Offsets::kWeights5, Offsets::kBiases5,
                                                                   batch, block, of_warp);
    descend_convolution(descent, results, batch, block - kBlocks5, of_warp);
}

}  // namespace day33
