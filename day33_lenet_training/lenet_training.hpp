// LeNet-5 (Y. LeCun and others, 1998), with a kernel for each layer or two kernels in all, and one
// step of its training as a CUDA graph.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "digits.hpp"
#include "pooling.hpp"
#include "shapes.hpp"

namespace day33 {

struct PictureResults;  // beyond/lenet_layers.cuh

// Images of 28 x 28 become ten scores, one per digit:
//
//   6 filters of 5 x 5, padding 2     28 x 28     ReLU, max-pool to 14 x 14
//   16 filters of 5 x 5               10 x 10     ReLU, max-pool to 5 x 5
//   fully connected, 400 to 120       1 x 1       ReLU
//   fully connected, 120 to 84        1 x 1       ReLU
//   fully connected, 84 to 10         1 x 1       the scores
//
// A fully connected layer is a convolution of images that have one pixel, with filters of 1 x 1: 16
// planes of 5 x 5 lie in memory as 400 channels of 1 x 1 do. Today's usual ReLU and max-pooling
// replace the tanh and the trained averages of 1998.
class LeNet {
  public:
    // The kernels of a training step.
    enum class Kernels {
        kOfLayers,         // one for each layer and pass: 34, of lenet_training.cuh
        kParallelSums,     // as many; a block per weight of a convolution
        kSkippedProducts,  // as many; of its outputs only those that were a maximum
        kWarpSums,         // as many; a warp per output of a fully connected layer
        kBlockPerImage,    // 17; a block per image in each: beyond/lenet_stages.cuh
        kOneLaunch,        // 2; a block carries its image through all layers
        kOfPictures        // 2; it keeps their outputs in shared memory: beyond/lenet_fused.cuh
    };
    static constexpr Kernels kAllKernels[] = {
        Kernels::kOfLayers,      Kernels::kParallelSums, Kernels::kSkippedProducts, Kernels::kWarpSums,
        Kernels::kBlockPerImage, Kernels::kOneLaunch,    Kernels::kOfPictures};

    // Random weights. `training` is copied to the device; it has at least `batch` images. Throws
    // std::invalid_argument otherwise.
    LeNet(int batch, const Digits& training, std::uint64_t seed, Kernels kernels = Kernels::kOfPictures);
    LeNet(const LeNet&) = delete;
    LeNet& operator=(const LeNet&) = delete;
    ~LeNet();

    // Enqueues one step: the next batch of the training images, forward, backward, and weights
    // moved against their gradient. All of it is one launch of a graph, recorded once.
    void step(cudaStream_t stream);

    // The loss of the last batch that was computed: the mean of -log(probability of the label).
    // Like the functions below, waits for the device first.
    double loss() const;

    // The fraction of these images that have the highest score at their label. Images that do not
    // fill a batch do not count.
    double accuracy(const Digits& digits);

    // For tests: the loss of the first batch of the training images with these parameters, and its
    // gradient. Weights of a layer, then its biases, layer after layer.
    std::vector<float> parameters() const;
    void set_parameters(std::span<const float> values);
    std::vector<float> gradient_of_first_batch();

    // The first layer's 6 filters of 5 x 5.
    std::vector<float> first_filters() const;

  private:
    static constexpr float kRate = 0.02f;
    static constexpr float kMomentum = 0.9f;

    struct Layer {
        LayerShape shape;
        bool pooled = false;      // max-pool 2 x 2 after it
        bool rectified = true;    // ReLU
        std::size_t weights = 0;  // where they start among the parameters
        std::size_t biases = 0;
        course::DeviceBuffer<float> y{};   // the result, after ReLU
        course::DeviceBuffer<float> dy{};  // its gradient
        course::DeviceBuffer<float> pooled_y{};
        course::DeviceBuffer<float> pooled_dy{};
        course::DeviceBuffer<std::uint8_t> place{};

        PoolShape pool() const;
        Channels channels() const;
        // The input of the next layer, and its gradient.
        course::DeviceBuffer<float>& out() { return pooled ? pooled_y : y; }
        course::DeviceBuffer<float>& out_gradient() { return pooled ? pooled_dy : dy; }
    };

    void add_layer(LayerShape shape, bool pooled, bool rectified);
    DeviceSpan<float> part(course::DeviceBuffer<float>& all, std::size_t first, std::size_t count) {
        return all.span().subspan(first, count);
    }
    void forward(cudaStream_t stream);
    void backward(cudaStream_t stream);
    void weight_gradient(const Layer& layer, DeviceSpan<const float> x, cudaStream_t stream);
    // A step with the next of `batches` batches. moves: the parameters, too; else only the gradient
    // is computed.
    void enqueue_layers(cudaStream_t stream, int batches, bool moves);
    void enqueue_stages(cudaStream_t stream, const PictureResults& results, int batches);
    void enqueue_pictures(cudaStream_t stream, int batches, bool moves);
    void enqueue_step(cudaStream_t stream, int batches, bool moves);

    int batch_;
    Kernels kernels_;
    std::vector<Layer> layers_;
    std::size_t parameter_count_ = 0;
    course::DeviceBuffer<float> parameters_;
    course::DeviceBuffer<float> gradient_;
    course::DeviceBuffer<float> velocity_;
    course::DeviceBuffer<float> training_;
    course::DeviceBuffer<int> training_labels_;
    course::DeviceBuffer<unsigned> steps_;  // how many were made
    course::DeviceBuffer<float> images_;    // of the current batch
    course::DeviceBuffer<int> labels_;
    course::DeviceBuffer<float> losses_;  // of each image
    course::DeviceBuffer<float> scratch_;
    course::DeviceBuffer<float> of_stages_;
    course::DeviceBuffer<float> of_pictures_;  // what kernels with a block per image pass on
    cudaGraphExec_t graph_ = nullptr;
};

}  // namespace day33
