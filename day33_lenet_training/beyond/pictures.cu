// Day 33's host code of the version `pictures`: a step as two kernels. They and their launches are
// in lenet_fused.cuh and lenet_descent.cuh. The other versions with a block per image have the
// second of them in common.
#include "common/check/check.hpp"
#include "lenet_descent.cuh"
#include "lenet_fused.cuh"
#include "lenet_training.hpp"
#include "pictures.hpp"

namespace day33 {
namespace {

// The rows of all images, one array after the other. Each row is a whole number of float4.
constexpr std::size_t kFloatsOfPicture = kConvParameters + kFlat + 2 * (kHidden1 + kHidden2) + kScoresPadded;
PictureResults results_of_pictures(float* memory, int batch) {
    const auto next = [&](int floats) {
        float* const rows = memory;
        memory += static_cast<std::ptrdiff_t>(batch) * floats;
        return rows;
    };
    return {.conv_gradient = next(kConvParameters),
            .flat = next(kFlat),
            .hidden1 = next(kHidden1),
            .hidden2 = next(kHidden2),
            .d_hidden1 = next(kHidden1),
            .d_hidden2 = next(kHidden2),
            .d_scores = next(kScoresPadded)};
}

}  // namespace

std::size_t floats_of_picture() {
    return kFloatsOfPicture;
}
std::size_t parameters_of_pictures() {
    return Offsets::kCount;
}

void LeNet::enqueue_pictures(cudaStream_t stream, int batches, bool moves) {
    const PictureResults results = results_of_pictures(of_pictures_.data(), batch_);
    if (kernels_ == Kernels::kOfPictures) {
        launch_learn_picture(training_.data(), training_labels_.data(), steps_.data(), parameters_.data(),
                             losses_.data(), results, batch_, batches, stream);
        CUDA_CHECK_LAUNCH();
    } else {
        enqueue_stages(stream, results, batches);
    }
    const Descent descent{.parameters = parameters_.data(),
                          .velocity = velocity_.data(),
                          .gradient = gradient_.data(),
                          .rate = kRate,
                          .momentum = kMomentum,
                          .moves = moves};
    launch_descend_batch(descent, results, steps_.data(), batch_, stream);
    CUDA_CHECK_LAUNCH();
}

}  // namespace day33
