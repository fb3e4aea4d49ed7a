// Day 33's host code of pooling, bias and activation, and the order of the kernels in a step of 34
// launches. The kernels and their launches are in lenet_training.cuh, beyond/lenet_sums.cuh and
// beyond/pooling.cuh.
#include "beyond/lenet_sums.cuh"
#include "beyond/pooling.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "lenet_training.cuh"
#include "lenet_training.hpp"
#include "pooling.hpp"

namespace day33 {
namespace {

using course::require;

constexpr std::size_t kMostElements = std::size_t{1} << 30;

void check(const PoolShape& shape) {
    require(shape.planes >= 0 && shape.h >= 1 && shape.w >= 1 && shape.h <= 32768 && shape.w <= 32768,
            "pooling: ", shape.planes, " planes of ", course::shape_text(shape.h, shape.w),
            "; expected planes of 1 to 32768 rows and columns");
    require(shape.window >= 1 && shape.window <= 16, "pooling: window is ", shape.window,
            "; expected 1 to 16, so that a byte holds a place in it");
    require(shape.stride >= 1 && shape.stride <= 32768, "pooling: stride is ", shape.stride,
            "; expected 1 to 32768");
    require(shape.padding >= 0 && 2 * shape.padding <= shape.window, "pooling: padding is ", shape.padding,
            "; expected at most half of the window, which is ", shape.window);
    require(shape.window <= shape.h + 2 * shape.padding && shape.window <= shape.w + 2 * shape.padding,
            "pooling: window is ", shape.window, " and the plane with padding ",
            course::shape_text(shape.h + 2 * shape.padding, shape.w + 2 * shape.padding),
            "; expected a window that fits into it");
    require(shape.inputs() <= kMostElements && shape.outputs() <= kMostElements, "pooling: ", shape.inputs(),
            " and ", shape.outputs(), " elements; expected at most ", kMostElements);
}

void check_length(const char* name, std::size_t got, std::size_t expected) {
    require(got == expected, "pooling: ", name, " has ", got, " elements; expected ", expected);
}

}  // namespace

void max_pool(const PoolShape& shape, DeviceSpan<const float> x, DeviceSpan<float> y,
              DeviceSpan<std::uint8_t> place, cudaStream_t stream) {
    check(shape);
    check_length("x", x.size(), shape.inputs());
    check_length("y", y.size(), shape.outputs());
    check_length("place", place.size(), shape.outputs());
    if (y.empty()) return;
    // Windows of max_pool_rows: a row of x is whole packs of four, a row of y of two.
    const bool usual = shape.stride == 2 && shape.window >= 2 && shape.window <= 3 &&
                       shape.padding == shape.window - 2 && shape.w % 4 == 0;
    if (usual && course::is_aligned(x.data(), 16) && course::is_aligned(y.data(), 8) &&
        course::is_aligned(place.data(), 2)) {
        const auto launch = shape.window == 2 ? launch_max_pool_rows<2> : launch_max_pool_rows<3>;
        launch(x.data(), y.data(), place.data(), shape, stream);
    } else {
        const auto launch = shape.window == 2   ? launch_max_pool_windows<2>
                            : shape.window == 3 ? launch_max_pool_windows<3>
                                                : launch_max_pool_windows<0>;
        launch(x.data(), y.data(), place.data(), shape, stream);
    }
    CUDA_CHECK_LAUNCH();
}

void max_pool_gradient(const PoolShape& shape, DeviceSpan<const float> dy,
                       DeviceSpan<const std::uint8_t> place, DeviceSpan<float> dx, cudaStream_t stream) {
    check(shape);
    check_length("dy", dy.size(), shape.outputs());
    check_length("place", place.size(), shape.outputs());
    check_length("dx", dx.size(), shape.inputs());
    if (dx.empty()) return;
    launch_max_pool_gather(dy.data(), place.data(), dx.data(), shape, stream);
    CUDA_CHECK_LAUNCH();
}

void average_pool(const PoolShape& shape, DeviceSpan<const float> x, DeviceSpan<float> y,
                  cudaStream_t stream) {
    check(shape);
    check_length("x", x.size(), shape.inputs());
    check_length("y", y.size(), shape.outputs());
    if (y.empty()) return;
    const auto launch = shape.window == 2   ? launch_average_pool_windows<2>
                        : shape.window == 3 ? launch_average_pool_windows<3>
                                            : launch_average_pool_windows<0>;
    launch(x.data(), y.data(), shape, stream);
    CUDA_CHECK_LAUNCH();
}

void average_pool_gradient(const PoolShape& shape, DeviceSpan<const float> dy, DeviceSpan<float> dx,
                           cudaStream_t stream) {
    check(shape);
    check_length("dy", dy.size(), shape.outputs());
    check_length("dx", dx.size(), shape.inputs());
    if (dx.empty()) return;
    launch_average_pool_gather(dy.data(), dx.data(), shape, stream);
    CUDA_CHECK_LAUNCH();
}

void check(const Channels& shape) {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    course::require(shape.n >= 0 && shape.k >= 1 && shape.plane >= 1 && shape.elements() <= kMost,
                    "channels: n, k, plane are ", shape.n, ", ", shape.k, ", ", shape.plane,
                    "; expected n >= 0, the others >= 1, and at most 2^30 elements");
}

void bias_relu(const Channels& shape, DeviceSpan<float> y, DeviceSpan<const float> bias,
               cudaStream_t stream) {
    check(shape);
    check_length("y", y.size(), shape.elements());
    check_length("bias", bias.size(), static_cast<std::size_t>(shape.k));
    if (y.empty()) return;
    const bool fours = shape.plane % 4 == 0 && course::is_aligned(y.data(), 16);
    const auto launch = fours ? launch_add_bias_relu<4> : launch_add_bias_relu<1>;
    launch(y.data(), bias.data(), shape, stream);
    CUDA_CHECK_LAUNCH();
}

void bias_relu_gradient(const Channels& shape, DeviceSpan<const float> y, DeviceSpan<const float> dy,
                        DeviceSpan<float> dz, DeviceSpan<float> dbias, DeviceSpan<float> scratch,
                        cudaStream_t stream) {
    check(shape);
    const auto planes = static_cast<std::size_t>(shape.n) * static_cast<std::size_t>(shape.k);
    check_length("y", y.size(), shape.elements());
    check_length("dy", dy.size(), shape.elements());
    check_length("dz", dz.size(), shape.elements());
    check_length("dbias", dbias.size(), static_cast<std::size_t>(shape.k));
    check_length("scratch", scratch.size(), planes);
    if (dbias.empty()) return;
    if (planes > 0) {
        launch_relu_gradient_planes(y.data(), dy.data(), dz.data(), scratch.data(), shape, stream);
        CUDA_CHECK_LAUNCH();
    }
    launch_add_planes(scratch.data(), dbias.data(), shape, stream);
    CUDA_CHECK_LAUNCH();
}

// --- A step of 34 launches -----------------------------------------------------------------------

void LeNet::forward(cudaStream_t stream) {
    DeviceSpan<const float> x = images_.span();
    for (Layer& layer : layers_) {
        const bool warps = kernels_ == Kernels::kWarpSums && layer.shape.plane() == 1;
        const auto launch = warps ? launch_warp_forward : launch_layer_forward;
        launch(x.data(), parameters_.data() + layer.weights, layer.y.data(), layer.shape, stream);
        CUDA_CHECK_LAUNCH();
        if (layer.rectified)
            bias_relu(layer.channels(), layer.y.span(),
                      part(parameters_, layer.biases, static_cast<std::size_t>(layer.shape.k)), stream);
        if (layer.pooled)
            max_pool(layer.pool(), layer.y.span(), layer.pooled_y.span(), layer.place.span(), stream);
        x = layer.out().span();
    }
    Layer& last = layers_.back();
    launch_softmax_loss(last.y.data(), part(parameters_, last.biases, kScores).data(), labels_.data(),
                        last.dy.data(), losses_.data(), batch_, stream);
    CUDA_CHECK_LAUNCH();
}

// A fully connected layer has a thread per weight in any case: it has thousands of weights, and one
// output of each image for each.
void LeNet::weight_gradient(const Layer& layer, DeviceSpan<const float> x, cudaStream_t stream) {
    float* const dw = gradient_.data() + layer.weights;
    if (kernels_ == Kernels::kOfLayers || layer.shape.plane() == 1) {
        launch_layer_weight_gradient(x.data(), layer.dy.data(), dw, layer.shape, stream);
    } else if (kernels_ == Kernels::kParallelSums) {
        launch_block_weight_gradient(x.data(), layer.dy.data(), dw, layer.shape, stream);
    } else {
        launch_pooled_weight_gradient(x.data(), layer.dy.data(), layer.place.data(), dw, layer.shape, stream);
    }
    CUDA_CHECK_LAUNCH();
}

void LeNet::backward(cudaStream_t stream) {
    for (std::size_t i = layers_.size(); i-- > 0;) {
        Layer& layer = layers_[i];
        const auto filters = static_cast<std::size_t>(layer.shape.k);
        const DeviceSpan<float> dbias = part(gradient_, layer.biases, filters);
        if (layer.pooled)
            max_pool_gradient(layer.pool(), layer.pooled_dy.span(), layer.place.span(), layer.dy.span(),
                              stream);
        if (layer.rectified) {
            bias_relu_gradient(layer.channels(), layer.y.span(), layer.dy.span(), layer.dy.span(), dbias,
                               part(scratch_, 0, static_cast<std::size_t>(batch_) * filters), stream);
        } else {
            launch_add_scores(layer.dy.data(), dbias.data(), batch_, stream);
            CUDA_CHECK_LAUNCH();
        }
        const DeviceSpan<const float> x = i == 0 ? images_.span() : layers_[i - 1].out().span();
        weight_gradient(layer, x, stream);
        if (i == 0) return;  // the gradient of the images is not used
        launch_layer_input_gradient(layer.dy.data(), parameters_.data() + layer.weights,
                                    layers_[i - 1].out_gradient().data(), layer.shape, stream);
        CUDA_CHECK_LAUNCH();
    }
}

void LeNet::enqueue_layers(cudaStream_t stream, int batches, bool moves) {
    launch_take_batch(training_.data(), training_labels_.data(), steps_.data(), images_.data(),
                      labels_.data(), batch_, batches, stream);
    CUDA_CHECK_LAUNCH();
    forward(stream);
    backward(stream);
    if (!moves) return;
    launch_descend(parameters_.data(), velocity_.data(), gradient_.data(), static_cast<int>(parameter_count_),
                   kRate, kMomentum, steps_.data(), stream);
    CUDA_CHECK_LAUNCH();
}

}  // namespace day33
