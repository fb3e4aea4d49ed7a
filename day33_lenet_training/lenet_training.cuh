// Day 33: LeNet-5 learns to read digits. Here are the kernels of a training step, a kernel for each
// layer and pass; pooling has its own in pooling.cuh, bias and ReLU in bias_relu.cuh.
//
//   version    what is new                                      what limits it
//   layers     a kernel for each layer and each of its passes   34 launches, most of them small
//   pictures   a block carries an image through all layers      barriers between layers (lenet_fused.cuh)
//
//     ./course run day33
//     ./course inspect day33 --only layers
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "digits.hpp"
#include "lenet_training.hpp"

namespace day33 {

constexpr int kScores = 10;
constexpr int kNetThreads = 256;
constexpr int kPixels = kDigitSide * kDigitSide;

// --- The three passes of a layer -----------------------------------------------------------------

// Idea: a thread per output, (image, filter, row, column), which adds its C x R x R products.
// Cost removed: none. This is the definition.
// Still limits it: every product is two loads. Day 28 shows what can be done about that.
__global__ void layer_forward(const float* x, const float* w, float* y, LayerShape shape) {
    const int i = static_cast<int>(blockIdx.x) * kNetThreads + static_cast<int>(threadIdx.x);
    if (i >= shape.n * shape.k * shape.plane()) return;
    const int p = i / shape.q() % shape.p();
    const int q = i % shape.q();
    const int k = i / shape.plane() % shape.k;
    const int image = i / (shape.plane() * shape.k);
    float sum = 0;
    for (int c = 0; c < shape.c; ++c)
        for (int r = 0; r < shape.r; ++r)
            for (int s = 0; s < shape.r; ++s) {
                const int row = p + r - shape.padding;
                const int col = q + s - shape.padding;
                if (row < 0 || row >= shape.h || col < 0 || col >= shape.w) continue;
                sum += x[((image * shape.c + c) * shape.h + row) * shape.w + col] *
                       w[((k * shape.c + c) * shape.r + r) * shape.r + s];
            }
    y[i] = sum;
}

// Idea: a thread per input gathers from all outputs that used its element.
// Cost removed: atomic additions, because no two threads write the same element.
// Still limits it: the same loads, and fewer threads if a layer has few inputs.
__global__ void layer_input_gradient(const float* dy, const float* w, float* dx, LayerShape shape) {
    const int i = static_cast<int>(blockIdx.x) * kNetThreads + static_cast<int>(threadIdx.x);
    if (i >= shape.n * shape.c * shape.h * shape.w) return;
    const int row = i / shape.w % shape.h;
    const int col = i % shape.w;
    const int c = i / (shape.w * shape.h) % shape.c;
    const int image = i / (shape.w * shape.h * shape.c);
    float sum = 0;
    for (int k = 0; k < shape.k; ++k)
        for (int r = 0; r < shape.r; ++r)
            for (int s = 0; s < shape.r; ++s) {
                // The output in which weight (r, s) met this element.
                const int p = row + shape.padding - r;
                const int q = col + shape.padding - s;
                if (p < 0 || p >= shape.p() || q < 0 || q >= shape.q()) continue;
                sum += dy[((image * shape.k + k) * shape.p() + p) * shape.q() + q] *
                       w[((k * shape.c + c) * shape.r + r) * shape.r + s];
            }
    dx[i] = sum;
}

// Idea: a thread per weight, which adds over all outputs of all images.
// Cost removed: atomic additions. The order is always the same, so the same data give the same
// bits.
// Still limits it: the first layer has 150 weights. So 150 threads add batch x 784 products each,
// and the rest of the GPU is idle.
__global__ void layer_weight_gradient(const float* x, const float* dy, float* dw, LayerShape shape) {
    const int i = static_cast<int>(blockIdx.x) * kNetThreads + static_cast<int>(threadIdx.x);
    if (i >= shape.k * shape.filter()) return;
    const int s = i % shape.r;
    const int r = i / shape.r % shape.r;
    const int c = i / (shape.r * shape.r) % shape.c;
    const int k = i / shape.filter();
    float sum = 0;
    for (int image = 0; image < shape.n; ++image)
        for (int p = 0; p < shape.p(); ++p)
            for (int q = 0; q < shape.q(); ++q) {
                const int row = p + r - shape.padding;
                const int col = q + s - shape.padding;
                if (row < 0 || row >= shape.h || col < 0 || col >= shape.w) continue;
                sum += x[((image * shape.c + c) * shape.h + row) * shape.w + col] *
                       dy[((image * shape.k + k) * shape.p() + p) * shape.q() + q];
            }
    dw[i] = sum;
}

// --- Batch, loss, descent ------------------------------------------------------------------------

// Copies the next batch. A counter in device memory selects the batch, so every launch of the graph
// is the same, and still processes the next images.
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

}  // namespace day33
