// Day 33: LeNet-5 learns to read digits.            PMPP chapter 16 (4th edition), 19 (5th edition)
//
// A training step: the network's answers to a batch of images, how wrong they are, the gradient of
// each parameter, and a move of all parameters against it. Here is a kernel for each layer and each
// of its passes, in the order of the step, each followed by its launch.
//
//   version         what is new                              what limits it
//   layers          a kernel for each layer and its passes   one thread adds 50,176 products
//   parallel_sums   a block per weight of a convolution      products with 0, and what is below
//
// shapes.hpp has the shapes. Tensors are in NCHW, as on day 28. beyond/ goes on from here, one idea
// at a time, until a step is two launches; it also has faster pooling.
//
//   ./course run day33                          every version, verified and timed
//   ./course run day33 --program                program.cu: some steps, from main() to the loss
//   ./course inspect day33 --only layers        sectors of each line
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/device/block_reduce.cuh"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "shapes.hpp"

namespace day33 {

constexpr int kNetThreads = 256;

// --- Forward -------------------------------------------------------------------------------------

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

inline void launch_layer_forward(const float* x, const float* w, float* y, const LayerShape& shape,
                                 cudaStream_t stream) {
    const unsigned grid = course::blocks_for(shape.outputs(), kNetThreads);
    layer_forward<<<grid, kNetThreads, 0, stream>>>(x, w, y, shape);
}

__device__ inline int thread_of_grid() {
    return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

__device__ inline float relu(float value) {
    return value < 0 ? 0.0f : value;  // NaN stays
}

// y = max(y + bias of its channel, 0), in place. kPack: 4 where planes are whole float4, else 1.
// `packs` of them are all of y.
template <int kPack>
__global__ void add_bias_relu(float* y, const float* bias, int packs, int k, int packs_of_plane) {
    const int i = thread_of_grid();
    if (i >= packs) return;
    const float b = bias[i / packs_of_plane % k];
    float* const at = y + static_cast<std::ptrdiff_t>(i) * kPack;
    auto values = course::Pack<float, kPack>::load(at);
#pragma unroll
    for (float& value : values.value)
        value = relu(value + b);
    values.store(at);
}

template <int kPack>
void launch_add_bias_relu(float* y, const float* bias, const Channels& shape, cudaStream_t stream) {
    const std::size_t packs = shape.elements() / kPack;
    add_bias_relu<kPack><<<course::blocks_for(packs, kNetThreads), kNetThreads, 0, stream>>>(
        y, bias, static_cast<int>(packs), shape.k, shape.plane / kPack);
}

// Idea: a thread per window. kWindow is its side, known to the compiler, which unrolls both loops,
// or 0: any.
// Cost removed: the place of the maximum is a byte, not a float; the input is not needed again.
// Still limits it: in LeNet the launch (counters: 3 µs, no unit above 18 %). Overlapping windows
// share elements in the caches.
template <int kWindow>
__global__ void max_pool_windows(const float* x, float* y, std::uint8_t* place, PoolShape shape) {
    const int i = thread_of_grid();
    if (i >= shape.planes * shape.p() * shape.q()) return;
    const int window = kWindow > 0 ? kWindow : shape.window;
    const int plane = i / (shape.p() * shape.q());
    const int top = i / shape.q() % shape.p() * shape.stride - shape.padding;
    const int left = i % shape.q() * shape.stride - shape.padding;
    const float* const first = x + static_cast<std::ptrdiff_t>(plane) * shape.h * shape.w;

    float largest = -INFINITY;
    int largest_at = -1;
#pragma unroll
    for (int r = 0; r < window; ++r)
#pragma unroll
        for (int s = 0; s < window; ++s) {
            const int row = top + r;
            const int col = left + s;
            if (row < 0 || row >= shape.h || col < 0 || col >= shape.w) continue;
            const float value = first[row * shape.w + col];
            // The first element counts even if it is -Inf; NaN counts, and then nothing is larger.
            if (largest_at < 0 || value > largest || (isnan(value) && !isnan(largest))) {
                largest = value;
                largest_at = r * window + s;
            }
        }
    y[i] = largest;
    place[i] = static_cast<std::uint8_t>(largest_at);
}

template <int kWindow>
void launch_max_pool_windows(const float* x, float* y, std::uint8_t* place, const PoolShape& shape,
                             cudaStream_t stream) {
    const unsigned grid = course::blocks_for(shape.outputs(), kNetThreads);
    max_pool_windows<kWindow><<<grid, kNetThreads, 0, stream>>>(x, y, place, shape);
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

inline void launch_softmax_loss(const float* scores, const float* bias, const int* labels, float* gradient,
                                float* losses, int batch, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(batch, kNetThreads);
    softmax_loss<<<grid, kNetThreads, 0, stream>>>(scores, bias, labels, gradient, losses, batch);
}

// --- Backward ------------------------------------------------------------------------------------

// The gradient of the last biases: the sum of each score's gradient over the batch, in order.
__global__ void add_scores(const float* gradient, float* dbias, int batch) {
    const int i = static_cast<int>(threadIdx.x);
    if (i >= kScores) return;
    float sum = 0;
    for (int image = 0; image < batch; ++image)
        sum += gradient[image * kScores + i];
    dbias[i] = sum;
}

inline void launch_add_scores(const float* gradient, float* dbias, int batch, cudaStream_t stream) {
    add_scores<<<1, kNetThreads, 0, stream>>>(gradient, dbias, batch);
}

// The windows that an element is in, along rows or columns: [first, end).
struct Windows {
    int first;
    int end;
};
__device__ inline Windows windows_around(int i, int window, int padding, int stride, int count) {
    const int last_start = i + padding;  // of a window that starts with this element
    const int first_start = last_start - window + 1;
    const int first = first_start <= 0 ? 0 : (first_start + stride - 1) / stride;
    return {first, min(last_start / stride + 1, count)};
}

// Idea: a thread per input, which gathers from the windows that it is in.
// Cost removed: atomic additions, which a thread per window would need if windows overlap.
// Still limits it: in LeNet the launch (counters: 9 µs for both layers).
__global__ void max_pool_gather(const float* dy, const std::uint8_t* place, float* dx, PoolShape shape) {
    const int i = thread_of_grid();
    if (i >= shape.planes * shape.h * shape.w) return;
    const int plane = i / (shape.h * shape.w);
    const int row = i / shape.w % shape.h;
    const int col = i % shape.w;
    const Windows down = windows_around(row, shape.window, shape.padding, shape.stride, shape.p());
    const Windows across = windows_around(col, shape.window, shape.padding, shape.stride, shape.q());
    float sum = 0;
    for (int p = down.first; p < down.end; ++p)
        for (int q = across.first; q < across.end; ++q) {
            const int output = (plane * shape.p() + p) * shape.q() + q;
            const int r = row + shape.padding - p * shape.stride;
            const int s = col + shape.padding - q * shape.stride;
            if (place[output] == r * shape.window + s) sum += dy[output];
        }
    dx[i] = sum;
}

inline void launch_max_pool_gather(const float* dy, const std::uint8_t* place, float* dx,
                                   const PoolShape& shape, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(shape.inputs(), kNetThreads);
    max_pool_gather<<<grid, kNetThreads, 0, stream>>>(dy, place, dx, shape);
}

// Idea: a block per plane computes its dz and its part of the bias's gradient in one pass.
// Cost removed: a second pass over dz.
// Still limits it: barriers: warps spend 48 % of their time waiting at those of the sum (counters).
__global__ void relu_gradient_planes(const float* y, const float* dy, float* dz, float* sums, int plane) {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(blockIdx.x) * plane;
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < plane; i += kNetThreads) {
        // A NaN of y passes the gradient on, too.
        const float gradient = y[first + i] == 0 ? 0.0f : dy[first + i];
        dz[first + i] = gradient;
        sum += gradient;
    }
    sum = course::block_reduce<kNetThreads>(sum, course::Sum{});
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// sums: one for each plane.
inline void launch_relu_gradient_planes(const float* y, const float* dy, float* dz, float* sums,
                                        const Channels& shape, cudaStream_t stream) {
    relu_gradient_planes<<<shape.n * shape.k, kNetThreads, 0, stream>>>(y, dy, dz, sums, shape.plane);
}

// The sum of each channel over the images, in order.
__global__ void add_planes(const float* sums, float* dbias, int n, int k) {
    const int channel = thread_of_grid();
    if (channel >= k) return;
    float sum = 0;
    for (int image = 0; image < n; ++image)
        sum += sums[image * k + channel];
    dbias[channel] = sum;
}

inline void launch_add_planes(const float* sums, float* dbias, const Channels& shape, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(shape.k, kNetThreads);
    add_planes<<<grid, kNetThreads, 0, stream>>>(sums, dbias, shape.n, shape.k);
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

inline void launch_layer_weight_gradient(const float* x, const float* dy, float* dw, const LayerShape& shape,
                                         cudaStream_t stream) {
    const unsigned grid = course::blocks_for(shape.weights(), kNetThreads);
    layer_weight_gradient<<<grid, kNetThreads, 0, stream>>>(x, dy, dw, shape);
}

// Idea: a block per weight. Its threads share the outputs, and a reduction (day 15) adds their
// sums.
// Cost removed: the one thread that adds everything.
// Still limits it: three of four products are 0 where a maximum follows.
__global__ void block_weight_gradient(const float* x, const float* dy, float* dw, LayerShape shape) {
    const int weight = static_cast<int>(blockIdx.x);
    const int s = weight % shape.r;
    const int r = weight / shape.r % shape.r;
    const int c = weight / (shape.r * shape.r) % shape.c;
    const int k = weight / shape.filter();
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < shape.n * shape.plane(); i += kNetThreads) {
        const int image = i / shape.plane();
        const int p = i / shape.q() % shape.p();
        const int q = i % shape.q();
        const int row = p + r - shape.padding;
        const int col = q + s - shape.padding;
        if (row < 0 || row >= shape.h || col < 0 || col >= shape.w) continue;
        sum += x[((image * shape.c + c) * shape.h + row) * shape.w + col] *
               dy[((image * shape.k + k) * shape.p() + p) * shape.q() + q];
    }
    sum = course::block_reduce<kNetThreads>(sum, course::Sum{});
    if (threadIdx.x == 0) dw[weight] = sum;
}

inline void launch_block_weight_gradient(const float* x, const float* dy, float* dw, const LayerShape& shape,
                                         cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(shape.weights());
    block_weight_gradient<<<grid, kNetThreads, 0, stream>>>(x, dy, dw, shape);
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

inline void launch_layer_input_gradient(const float* dy, const float* w, float* dx, const LayerShape& shape,
                                        cudaStream_t stream) {
    const unsigned grid = course::blocks_for(shape.inputs(), kNetThreads);
    layer_input_gradient<<<grid, kNetThreads, 0, stream>>>(dy, w, dx, shape);
}

// --- The step ------------------------------------------------------------------------------------

// Copies the next batch. A counter in device memory selects the batch, so every launch of the graph
// is the same, and still processes the next images.
__global__ void take_batch(const float* pictures, const int* labels, const unsigned* steps,
                           float* batch_pictures, int* batch_labels, int batch, int batches) {
    const int i = static_cast<int>(blockIdx.x) * kNetThreads + static_cast<int>(threadIdx.x);
    const std::size_t first = static_cast<std::size_t>(*steps % static_cast<unsigned>(batches)) * batch;
    if (i < batch * kPixels) batch_pictures[i] = pictures[first * kPixels + i];
    if (i < batch) batch_labels[i] = labels[first + i];
}

inline void launch_take_batch(const float* pictures, const int* labels, const unsigned* steps,
                              float* batch_pictures, int* batch_labels, int batch, int batches,
                              cudaStream_t stream) {
    const unsigned grid = course::blocks_for(static_cast<std::size_t>(batch) * kPixels, kNetThreads);
    take_batch<<<grid, kNetThreads, 0, stream>>>(pictures, labels, steps, batch_pictures, batch_labels, batch,
                                                 batches);
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

inline void launch_descend(float* parameters, float* velocity, const float* gradient, int count, float rate,
                           float momentum, unsigned* steps, cudaStream_t stream) {
    const unsigned grid = course::blocks_for(count, kNetThreads);
    descend<<<grid, kNetThreads, 0, stream>>>(parameters, velocity, gradient, count, rate, momentum, steps);
}

}  // namespace day33
