// Day 33, beyond: the second kernel of a training step adds the gradients of the images of a batch,
// and moves the parameters.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "lenet_layers.cuh"

namespace day33 {

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

constexpr int kBatchWarps = 16;  // of a block; they share the images
constexpr int kBatchRows = 4;
using OfWarps = float[kBatchWarps][kBatchRows][course::kWarpSize];

// The sum over the warps, always in the same order, so that the same data give the same bits.
__device__ inline float add_warps(const OfWarps& of_warp, int row, int lane) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kBatchWarps; ++warp)
        sum += of_warp[warp][row][lane];
    return sum;
}

// 32 convolutional parameters: their gradients are in memory, one row per image.
__device__ inline void descend_convolution(const Descent& descent, const PictureResults& results, int batch,
                                           int block, OfWarps& of_warp) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const int i = block * course::kWarpSize + lane;
    // Parts start at multiples of four; between them there may be gaps.
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

// 4 rows x 32 columns of a fully connected layer's gradient: the sum over the images of dy[row]
// x[column]. After the last column come the biases, as weights of an input that is always 1.
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

// Idea: one launch for all parameters. A block has 32 or 128 of them; its warps share the images.
// Cost removed: the weights' gradients in global memory, and a launch for each layer.
// Still limits it: latency. With 64 images, a warp adds four products.
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

inline void launch_descend_batch(const Descent& descent, const PictureResults& results, unsigned* steps,
                                 int batch, cudaStream_t stream) {
    constexpr int kThreads = kBatchWarps * course::kWarpSize;
    descend_batch<<<kDescendBlocks, kThreads, 0, stream>>>(descent, results, steps, batch);
}

}  // namespace day33
