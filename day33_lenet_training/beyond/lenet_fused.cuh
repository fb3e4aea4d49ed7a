// Day 33, beyond: a training step of LeNet-5 as two kernels.
//
// The layers of LeNet are small: the outputs of all of them for one image fit into the shared
// memory of a block. So here a block carries one image through the whole network and back again,
// and the output of a layer stays in shared memory for the next one. All threads of a block share
// its sums.
//
//   learn_picture a block per image: forward, loss, backward
//   descend_batch (lenet_descent.cuh) adds the gradients of the images, moves the parameters
//
// Each line of learn_picture is a layer, a function of the whole block: the forward layers are in
// lenet_layers.cuh, their gradients in lenet_gradients.cuh.
//
// The gradients of convolutional weights, only 2,572 of them, are written image by image. For a
// fully connected layer with 48,000 weights that would be too much. But its gradient is the product
// of two vectors, dy and x, so the vectors are written, and the second kernel multiplies.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "lenet_gradients.cuh"
#include "lenet_layers.cuh"
#include "shapes.hpp"

namespace day33 {

// Copies from shared memory, or between any two arrays.
__device__ inline void copy_all(const float* from, float* to, int count) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kLearnThreads)
        to[i] = from[i];
}

// Idea: a block carries an image through the network, and its gradient back.
// Cost removed: 32 of 34 launches, the global memory between them, and the long sums of one thread.
// Still limits it: latency. Most layers keep only a part of the threads busy: with 64 images warps
// spend 30 % of their time waiting for loads, 27 % at barriers (counters). With fewer images than
// multiprocessors, the others are idle.
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
    // The counter is in device memory, so every launch of the graph is the same, and still
    // processes the next images.
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

inline void launch_learn_picture(const float* pictures, const int* labels, const unsigned* steps,
                                 const float* parameters, float* losses, const PictureResults& results,
                                 int batch, int batches, cudaStream_t stream) {
    learn_picture<<<batch, kLearnThreads, 0, stream>>>(pictures, labels, steps, parameters, losses, results,
                                                       batch, batches);
}

}  // namespace day33
