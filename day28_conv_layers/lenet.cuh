// Day 28: what a network needs beside layers: batches, a loss, and a step against the gradient.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "digits.hpp"

namespace day28 {

constexpr int kScores = 10;
constexpr int kNetThreads = 256;
constexpr int kPixels = kDigitSide * kDigitSide;

// Copies the next batch. Which one it is depends on a counter in device memory: so every launch of
// the graph is the same, and takes the next pictures all the same.
__global__ void take_batch(const float* pictures, const int* labels, const unsigned* steps,
                           float* batch_pictures, int* batch_labels, int batch, int batches) {
    const int i = static_cast<int>(blockIdx.x) * kNetThreads + static_cast<int>(threadIdx.x);
    const std::size_t first = static_cast<std::size_t>(*steps % static_cast<unsigned>(batches)) * batch;
    if (i < batch * kPixels) batch_pictures[i] = pictures[first * kPixels + i];
    if (i < batch) batch_labels[i] = labels[first + i];
}

// A thread per image: the scores become probabilities p, the loss is -log p[label]. Its gradient
// with respect to the scores is p, less 1 at the label. scores and gradient: batch x 10.
__global__ void softmax_loss(const float* scores, const float* bias, const int* labels, float* gradient,
                             float* losses, int batch) {
    const int image = static_cast<int>(blockIdx.x) * kNetThreads + static_cast<int>(threadIdx.x);
    if (image >= batch) return;
    float score[kScores];
    float largest = -INFINITY;
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
        score[i] = scores[image * kScores + i] + bias[i];
        largest = fmaxf(largest, score[i]);
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kScores; ++i)
        sum += expf(score[i] - largest);
    const int label = labels[image];
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
        const float probability = expf(score[i] - largest) / sum;
        gradient[image * kScores + i] =
            (probability - (i == label ? 1.0f : 0.0f)) / static_cast<float>(batch);
        if (i == label) losses[image] = logf(sum) - (score[i] - largest);
    }
}

// The gradient of the last biases: the sum of each score's gradient over the batch, in order.
__global__ void add_scores(const float* gradient, float* dbias, int batch) {
    const int i = static_cast<int>(threadIdx.x);
    if (i >= kScores) return;
    float sum = 0;
    for (int image = 0; image < batch; ++image)
        sum += gradient[image * kScores + i];
    dbias[i] = sum;
}

// Gradient descent with momentum, all parameters at once. Thread 0 counts the step.
__global__ void descend(float* parameters, float* velocity, const float* gradient, int count, float rate,
                        float momentum, unsigned* steps) {
    const int i = static_cast<int>(blockIdx.x) * kNetThreads + static_cast<int>(threadIdx.x);
    if (i == 0) ++*steps;
    if (i >= count) return;
    velocity[i] = momentum * velocity[i] - rate * gradient[i];
    parameters[i] += velocity[i];
}

}  // namespace day28
