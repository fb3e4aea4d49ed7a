// Day 33's network: its memory, its random weights, the graph of a step. The kernels and their
// launches are in lenet_training.cuh and beyond/.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "beyond/pictures.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/random.hpp"
#include "lenet_training.hpp"

namespace day33 {
namespace {

// `count` digits from `first` on.
Digits first_of(const Digits& digits, std::size_t first, std::size_t count) {
    const auto pictures = digits.pictures.begin() + static_cast<std::ptrdiff_t>(first * kPixels);
    const auto labels = digits.labels.begin() + static_cast<std::ptrdiff_t>(first);
    return {std::vector<float>(pictures, pictures + static_cast<std::ptrdiff_t>(count * kPixels)),
            std::vector<int>(labels, labels + static_cast<std::ptrdiff_t>(count))};
}

}  // namespace

PoolShape LeNet::Layer::pool() const {
    return {
        .planes = shape.n * shape.k, .h = shape.p(), .w = shape.q(), .window = 2, .padding = 0, .stride = 2};
}
Channels LeNet::Layer::channels() const {
    return {.n = shape.n, .k = shape.k, .plane = shape.plane()};
}

void LeNet::add_layer(LayerShape shape, bool pooled, bool rectified) {
    shape.n = batch_;
    Layer layer{.shape = shape, .pooled = pooled, .rectified = rectified};
    // Offsets are multiples of four: parameters are 16-byte aligned.
    layer.weights = parameter_count_;
    layer.biases = layer.weights + (shape.weights() + 3) / 4 * 4;
    parameter_count_ = layer.biases + (static_cast<std::size_t>(shape.k) + 3) / 4 * 4;
    layer.y = course::DeviceBuffer<float>(shape.outputs());
    layer.dy = course::DeviceBuffer<float>(shape.outputs());
    if (pooled) {
        layer.pooled_y = course::DeviceBuffer<float>(layer.pool().outputs());
        layer.pooled_dy = course::DeviceBuffer<float>(layer.pool().outputs());
        layer.place = course::DeviceBuffer<std::uint8_t>(layer.pool().outputs());
    }
    layers_.push_back(std::move(layer));
}

LeNet::LeNet(int batch, const Digits& training, std::uint64_t seed, Kernels kernels)
    : batch_(batch), kernels_(kernels) {
    course::require(batch >= 1 && training.labels.size() >= static_cast<std::size_t>(batch),
                    "LeNet: batch is ", batch, " and there are ", training.labels.size(),
                    " pictures; expected 1 to all of them");
    add_layer({.c = 1, .h = 28, .w = 28, .k = 6, .r = 5, .padding = 2}, true, true);
    add_layer({.c = 6, .h = 14, .w = 14, .k = 16, .r = 5}, true, true);
    add_layer({.c = 16 * 5 * 5, .k = 120}, false, true);
    add_layer({.c = 120, .k = 84}, false, true);
    add_layer({.c = 84, .k = kScores}, false, false);

    // Uniform, with a variance of 2 / (inputs of an output): so that signals neither grow nor fade
    // from layer to layer (K. He and others, 2015). Biases and padding are 0.
    std::vector<float> values(parameter_count_);
    course::Random random(seed);
    for (const Layer& layer : layers_) {
        const double limit = std::sqrt(6.0 / layer.shape.filter());
        for (std::size_t i = 0; i < layer.shape.weights(); ++i)
            values[layer.weights + i] = random.uniform(static_cast<float>(-limit), static_cast<float>(limit));
    }
    course::require(parameter_count_ == parameters_of_pictures(), "LeNet: the layers have ", parameter_count_,
                    " parameters; expected those of beyond/lenet_layers.cuh, ", parameters_of_pictures());
    parameters_ = course::DeviceBuffer<float>(std::span<const float>(values));
    const std::vector<float> zeros(parameter_count_);
    gradient_ = course::DeviceBuffer<float>(std::span<const float>(zeros));
    velocity_ = course::DeviceBuffer<float>(std::span<const float>(zeros));
    training_ = course::DeviceBuffer<float>(std::span<const float>(training.pictures));
    training_labels_ = course::DeviceBuffer<int>(std::span<const int>(training.labels));
    const std::vector<unsigned> none(1);
    steps_ = course::DeviceBuffer<unsigned>(std::span<const unsigned>(none));
    images_ = course::DeviceBuffer<float>(static_cast<std::size_t>(batch) * kPixels);
    labels_ = course::DeviceBuffer<int>(static_cast<std::size_t>(batch));
    losses_ = course::DeviceBuffer<float>(static_cast<std::size_t>(batch));

    std::size_t floats = 0;  // for bias_relu_gradient
    for (const Layer& layer : layers_)
        floats = std::max(floats, static_cast<std::size_t>(batch) * static_cast<std::size_t>(layer.shape.k));
    scratch_ = course::DeviceBuffer<float>(floats);
    of_pictures_ = course::DeviceBuffer<float>(static_cast<std::size_t>(batch) * floats_of_picture());
    if (kernels == Kernels::kBlockPerImage || kernels == Kernels::kOneLaunch)
        of_stages_ = course::DeviceBuffer<float>(static_cast<std::size_t>(batch) * floats_of_stages());
}

LeNet::~LeNet() {
    if (graph_ != nullptr) static_cast<void>(cudaGraphExecDestroy(graph_));
}

void LeNet::enqueue_step(cudaStream_t stream, int batches, bool moves) {
    kernels_ >= Kernels::kBlockPerImage ? enqueue_pictures(stream, batches, moves)
                                        : enqueue_layers(stream, batches, moves);
}

void LeNet::step(cudaStream_t stream) {
    if (graph_ == nullptr) {
        cudaStream_t recording = nullptr;
        cudaGraph_t graph = nullptr;
        CUDA_CHECK(cudaStreamCreateWithFlags(&recording, cudaStreamNonBlocking));
        CUDA_CHECK(cudaStreamBeginCapture(recording, cudaStreamCaptureModeThreadLocal));
        enqueue_step(recording, static_cast<int>(training_labels_.size()) / batch_, true);
        CUDA_CHECK(cudaStreamEndCapture(recording, &graph));
        CUDA_CHECK(cudaGraphInstantiate(&graph_, graph, 0));
        CUDA_CHECK(cudaGraphDestroy(graph));
        CUDA_CHECK(cudaStreamDestroy(recording));
    }
    CUDA_CHECK(cudaGraphLaunch(graph_, stream));
}

// A step may run on a stream that the default stream does not wait for.
std::vector<float> LeNet::parameters() const {
    CUDA_CHECK(cudaDeviceSynchronize());
    return parameters_.to_host();
}

void LeNet::set_parameters(std::span<const float> values) {
    CUDA_CHECK(cudaDeviceSynchronize());
    parameters_.copy_from(values);
}

double LeNet::loss() const {
    CUDA_CHECK(cudaDeviceSynchronize());
    const std::vector<float> losses = losses_.to_host();
    return std::accumulate(losses.begin(), losses.end(), 0.0) / batch_;
}

double LeNet::accuracy(const Digits& digits) {
    const auto batch = static_cast<std::size_t>(batch_);
    const std::vector<float> bias = [&] {
        const std::vector<float> all = parameters();
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(layers_.back().biases);
        return std::vector<float>(first, first + kScores);
    }();
    std::size_t right = 0;
    const std::size_t batches = digits.labels.size() / batch;
    course::require(batches >= 1, "LeNet: ", digits.labels.size(), " pictures; expected at least a batch, ",
                    batch_);
    for (std::size_t b = 0; b < batches; ++b) {
        const Digits part_of = first_of(digits, b * batch, batch);
        images_.copy_from(part_of.pictures);
        labels_.copy_from(part_of.labels);
        forward(nullptr);
        const std::vector<float> scores = layers_.back().y.to_host();
        for (std::size_t i = 0; i < batch; ++i) {
            int best = 0;
            for (int s = 1; s < kScores; ++s) {
                const auto at = [&](int score) {
                    return scores[i * kScores + static_cast<std::size_t>(score)] +
                           bias[static_cast<std::size_t>(score)];
                };
                if (at(s) > at(best)) best = s;
            }
            right += best == part_of.labels[i];
        }
    }
    return static_cast<double>(right) / static_cast<double>(batches * batch);
}

std::vector<float> LeNet::gradient_of_first_batch() {
    CUDA_CHECK(cudaDeviceSynchronize());
    const std::vector<unsigned> none(1);
    steps_.copy_from(none);
    enqueue_step(nullptr, 1, false);
    return gradient_.to_host();
}

std::vector<float> LeNet::first_filters() const {
    const std::vector<float> all = parameters();
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(layers_.front().shape.weights())};
}

}  // namespace day33
