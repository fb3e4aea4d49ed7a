// Day 33 as one program: a convolutional and a fully connected layer learn to tell ten angles of a
// stroke apart. Checks the gradient, and prints the time of a step and the loss.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 64 500           in this folder, with a GPU
//   ./course run day33 --program                                anywhere
#include <cuda_runtime.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lenet_training.cuh"

// Every CUDA call can fail: check each one.
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (false)

// `text` as a whole number from 1 to `most`; 0 if it is not one, such as 1e9.
long long number(const char* text, long long most) {
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    return *end == '\0' && value >= 1 && value <= most ? value : 0;
}

template <class T>
T* on_device(const std::vector<T>& host) {
    T* data;
    CHECK(cudaMalloc(&data, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return data;
}

double sum_of_powers(const float* data, int count, int power) {
    std::vector<float> host(count);
    CHECK(cudaMemcpy(host.data(), data, count * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (const float value : host)
        sum += std::pow(value, power);
    return sum;
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? static_cast<int>(number(argv[1], 10000)) : 16;
    const int count = argc > 2 ? static_cast<int>(number(argv[2], 1000000)) : 20;
    if (n == 0 || count == 0) {
        std::fprintf(stderr, "expected IMAGES from 1 to 10000 and STEPS from 1 to 1000000, whole numbers\n");
        return 2;
    }
    // 6 filters of 5 x 5, ReLU, max-pool to 14 x 14; then 1,176 numbers become ten scores.
    const day33::LayerShape first{n, 1, 28, 28, 6, 5, 2}, second{n, 1176, 1, 1, 10, 1, 0};
    const day33::Channels planes{n, 6, 784};
    const day33::PoolShape pool{n * 6, 28, 28, 2, 0, 2};
    // Where parts of the parameters start; the weights of the first layer are at 0.
    constexpr int kBias1 = 152, kWeights2 = 160, kBias2 = kWeights2 + 11760, kCount = kBias2 + 10;
    const auto random = [] { return static_cast<float>(std::rand()) / RAND_MAX - 0.5f; };
    std::vector<float> images(n * day33::kPixels), weights(kCount);
    std::vector<int> labels(n);
    for (int i = 0; i < n * day33::kPixels; ++i) {  // a stroke through the middle, and noise
        const double angle = 0.314 * (labels[i / 784] = i / 784 % 10);
        const double across = std::sin(angle) * (i % 28 - 14) + std::cos(angle) * (i / 28 % 28 - 14);
        images[i] = (std::fabs(across) < 2 ? 1.0f : 0.0f) + random() / 2;
    }
    for (int i = 0; i < kBias2; ++i)
        weights[i] = i < kBias1 ? random() : i < kWeights2 ? 0 : random() / 10;
    const auto zeros = [](std::size_t floats) { return on_device(std::vector<float>(floats)); };
    float *const x = on_device(images), *const w = on_device(weights), *const y = zeros(n * 4704),
                 *const pooled = zeros(n * 1176), *const scores = zeros(n * 10), *const losses = zeros(n),
                 *const dw = zeros(kCount), *const dy = zeros(n * 4704), *const dpooled = zeros(n * 1176),
                 *const dscores = zeros(n * 10), *const sums = zeros(n * 6), *const velocity = zeros(kCount);
    auto* const place = on_device(std::vector<std::uint8_t>(n * 1176));
    int* const device_labels = on_device(labels);
    unsigned* const steps = on_device(std::vector<unsigned>{0});
    const auto forward = [&] {
        day33::launch_layer_forward(x, w, y, first, nullptr);
        day33::launch_add_bias_relu<4>(y, w + kBias1, planes, nullptr);
        day33::launch_max_pool_windows<2>(y, pooled, place, pool, nullptr);
        day33::launch_layer_forward(pooled, w + kWeights2, scores, second, nullptr);
        day33::launch_softmax_loss(scores, w + kBias2, device_labels, dscores, losses, n, nullptr);
    };
    const auto backward = [&] {
        day33::launch_add_scores(dscores, dw + kBias2, n, nullptr);
        day33::launch_layer_weight_gradient(pooled, dscores, dw + kWeights2, second, nullptr);
        day33::launch_layer_input_gradient(dscores, w + kWeights2, dpooled, second, nullptr);
        day33::launch_max_pool_gather(dpooled, place, dy, pool, nullptr);
        day33::launch_relu_gradient_planes(y, dy, dy, sums, planes, nullptr);
        day33::launch_add_planes(sums, dw + kBias1, planes, nullptr);
        day33::launch_layer_weight_gradient(x, dy, dw, first, nullptr);
    };
    const auto descend = [&](float rate, float momentum) {
        day33::launch_descend(w, velocity, dw, kCount, rate, momentum, steps, nullptr);
    };
    const auto loss = [&] { return sum_of_powers(losses, n, 1) / n; };
    forward();
    backward();
    // A short move against the gradient g, rate times g, lowers the loss by rate times |g|^2.
    const double before = loss(), squares = sum_of_powers(dw, kCount, 2), less = before / 1000;
    descend(static_cast<float>(less / squares), 0);
    forward();
    const double ratio = (before - loss()) / less;
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < count; ++step) {
        forward();
        backward();
        descend(0.02, 0.9f);
    }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    std::printf("%d images: slope %.3f of the gradient's; loss %.3f, after %d steps %.3f; %.3f ms a step\n",
                n, ratio, before, count, loss(), time.count() / count);
    return std::fabs(ratio - 1) < 0.05 && loss() < before ? 0 : 1;
}
