// Day 33, beyond: the way of an image through the network in sixteen stages, with a block per
// image.
//
//   version           launches   what lies between two stages
//   block_per_image         17   a launch, global memory
//   one_launch               2   a barrier, global memory
//   pictures                 2   a barrier, shared memory (lenet_fused.cuh)
//
// Stages are functions of a block, from lenet_layers.cuh and lenet_gradients.cuh. The first two
// versions run the same code, so what one gains over the other is what launches cost, and waiting
// for the slowest block of each. The last launch of each version is descend_batch
// (lenet_descent.cuh).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "lenet_gradients.cuh"
#include "lenet_layers.cuh"
#include "shapes.hpp"

namespace day33 {

// Between two stages, one row per image. What PictureResults has is there.
struct PictureArrays {
    float* picture;    // batch x 32 x 34: the image in its padding
    float* pooled1;    // batch x 6 x 14 x 14
    float* d_pooled1;  // the same
    float* d_pooled2;  // batch x 400
    float* scores;     // batch x 12, of which 10 count
    float* scratch;    // batch x kSpread
    std::uint8_t* place1;
    std::uint8_t* place2;
};

struct LearnStep {
    const float* pictures;
    const int* labels;
    const unsigned* steps;
    const float* parameters;
    float* losses;
    PictureResults results;
    PictureArrays arrays;
    int batch;
    int batches;
};

// The first layer's input: an image with its padding, as in learn_picture.
__device__ inline void pad_picture(const float* pixels, float* picture) {
    for (int i = static_cast<int>(threadIdx.x); i < First::kPlane; i += kLearnThreads) {
        const int row = i / First::kStride - 2;  // 2: the padding
        const int col = i % First::kStride - 2;
        const bool inside = row >= 0 && row < kDigitSide && col >= 0 && col < kDigitSide;
        picture[i] = inside ? pixels[row * kDigitSide + col] : 0.0f;
    }
}

constexpr int kLearnStages = 16;

__device__ inline void learn_stage(int stage, const LearnStep& step) {
    const std::size_t image = blockIdx.x;
    const std::size_t number =
        static_cast<std::size_t>(*step.steps % static_cast<unsigned>(step.batches)) * step.batch + image;
    const float* const w1 = step.parameters + Offsets::kWeights1;
    const float* const w2 = step.parameters + Offsets::kWeights2;
    const float* const w3 = step.parameters + Offsets::kWeights3;
    const float* const w4 = step.parameters + Offsets::kWeights4;
    const float* const w5 = step.parameters + Offsets::kWeights5;
    float* const picture = step.arrays.picture + image * First::kPlane;
    float* const pooled1 = step.arrays.pooled1 + image * First::kOutputs;
    float* const d_pooled1 = step.arrays.d_pooled1 + image * First::kOutputs;
    float* const pooled2 = step.results.flat + image * kFlat;
    float* const d_pooled2 = step.arrays.d_pooled2 + image * kFlat;
    std::uint8_t* const place1 = step.arrays.place1 + image * First::kOutputs;
    std::uint8_t* const place2 = step.arrays.place2 + image * kFlat;
    float* const hidden1 = step.results.hidden1 + image * kHidden1;
    float* const hidden2 = step.results.hidden2 + image * kHidden2;
    float* const scores = step.arrays.scores + image * kScoresPadded;
    float* const d_hidden1 = step.results.d_hidden1 + image * kHidden1;
    float* const d_hidden2 = step.results.d_hidden2 + image * kHidden2;
    float* const d_scores = step.results.d_scores + image * kScoresPadded;
    float* const scratch = step.arrays.scratch + image * kSpread;
    float* const gradient = step.results.conv_gradient + image * kConvParameters;
    switch (stage) {
        case 0:
            return pad_picture(step.pictures + number * kPixels, picture);
        case 1:
            return convolve_and_pool<First>(picture, w1, step.parameters + Offsets::kBiases1, pooled1,
                                            place1);
        case 2:
            return convolve_and_pool<Second>(pooled1, w2, step.parameters + Offsets::kBiases2, pooled2,
                                             place2);
        case 3:
            return connect<kFlat, kHidden1, true>(pooled2, w3, step.parameters + Offsets::kBiases3, hidden1);
        case 4:
            return connect<kHidden1, kHidden2, true>(hidden1, w4, step.parameters + Offsets::kBiases4,
                                                     hidden2);
        case 5:
            return connect<kHidden2, kScores, false>(hidden2, w5, step.parameters + Offsets::kBiases5,
                                                     scores);
        case 6:
            return score_loss(scores, step.labels[number], step.batch, d_scores, step.losses + image);
        // And back.
        case 7:
            return connect_back<kHidden2, kScores>(d_scores, w5, hidden2, d_hidden2);
        case 8:
            return connect_back<kHidden1, kHidden2>(d_hidden2, w4, hidden1, d_hidden1);
        case 9:
            return connect_back<kFlat, kHidden1>(d_hidden1, w3, pooled2, d_pooled2);
        case 10:
            return weight_gradient_parts<Second, 1>(pooled1, d_pooled2, place2, scratch);
        case 11:
            return add_parts<Second, 1>(scratch, gradient + Offsets::kWeights2, gradient + Offsets::kBiases2);
        case 12:
            return spread_to_largest(d_pooled2, place2, scratch);
        case 13:
            return convolve_back(scratch, w2, pooled1, d_pooled1);
        case 14:
            return weight_gradient_parts<First, First::kP>(picture, d_pooled1, place1, scratch);
        case 15:
            return add_parts<First, First::kP>(scratch, gradient + Offsets::kWeights1,
                                               gradient + Offsets::kBiases1);
    }
}

// Idea: a block per image does the stages from kFirst to kEnd, with a barrier between two.
// Cost removed: in `block_per_image` the work of the kernels of a layer: a thread computes the 2 x
// 2 outputs of a window from registers, and stores only the largest. In `one_launch` 15 launches.
// Still limits it: latency (counters). Warps of `block_per_image` wait for loads 64 % of their
// time, and its launches are 29 of 81 µs with 64 images. Warps of `one_launch` wait for loads 49 %
// of their time and at barriers 25 %; `pictures`, without the arrays in global memory, is 1.14
// times as fast.
template <int kFirst, int kEnd>
__global__ void __launch_bounds__(kLearnThreads) learn_stages(LearnStep step) {
    // Unrolled, so that the compiler knows each stage: a loop keeps the addresses of all in
    // registers.
#pragma unroll
    for (int stage = kFirst; stage < kEnd; ++stage) {
        if (stage > kFirst) __syncthreads();
        learn_stage(stage, step);
    }
}

template <int kFirst, int kEnd>
void launch_learn_stages(const LearnStep& step, cudaStream_t stream) {
    learn_stages<kFirst, kEnd><<<step.batch, kLearnThreads, 0, stream>>>(step);
}

}  // namespace day33
