// Day 33's host code of the versions `block_per_image` and `one_launch`: learn_picture in sixteen
// stages. Their kernel and its launch are in lenet_stages.cuh.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/check/check.hpp"
#include "lenet_stages.cuh"
#include "lenet_training.hpp"
#include "pictures.hpp"

namespace day33 {
namespace {

// The rows of all images, one array after the other; the places, which are bytes, last.
PictureArrays arrays_of_pictures(float* memory, int batch) {
    const auto next = [&](int floats) {
        float* const rows = memory;
        memory += static_cast<std::ptrdiff_t>(batch) * floats;
        return rows;
    };
    return {.picture = next(First::kPlane),
            .pooled1 = next(First::kOutputs),
            .d_pooled1 = next(First::kOutputs),
            .d_pooled2 = next(kFlat),
            .scores = next(kScoresPadded),
            .scratch = next(kSpread),
            .place1 = reinterpret_cast<std::uint8_t*>(next(First::kOutputs / 4)),
            .place2 = reinterpret_cast<std::uint8_t*>(next(kFlat / 4))};
}

template <int... kStage>
void launch_one_by_one(const LearnStep& step, cudaStream_t stream, std::integer_sequence<int, kStage...>) {
    const auto launched = [] { CUDA_CHECK_LAUNCH(); };
    ((launch_learn_stages<kStage, kStage + 1>(step, stream), launched()), ...);
}

}  // namespace

std::size_t floats_of_stages() {
    return First::kPlane + 2 * First::kOutputs + kFlat + kScoresPadded + kSpread +
           (First::kOutputs + kFlat) / 4;
}

void LeNet::enqueue_stages(cudaStream_t stream, const PictureResults& results, int batches) {
    const LearnStep step{.pictures = training_.data(),
                         .labels = training_labels_.data(),
                         .steps = steps_.data(),
                         .parameters = parameters_.data(),
                         .losses = losses_.data(),
                         .results = results,
                         .arrays = arrays_of_pictures(of_stages_.data(), batch_),
                         .batch = batch_,
                         .batches = batches};
    if (kernels_ == Kernels::kOneLaunch) {
        launch_learn_stages<0, kLearnStages>(step, stream);
        CUDA_CHECK_LAUNCH();
    } else {
        launch_one_by_one(step, stream, std::make_integer_sequence<int, kLearnStages>());
    }
}

}  // namespace day33
