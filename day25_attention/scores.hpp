// Host API of day 25's part 1. Scoring functions: how well does each state of an encoder match the
// state h of a decoder?
//
//     dot product    score_j = h . s_j
//     Luong          score_j = h^T W s_j               M.-T. Luong, H. Pham, C. Manning, 2015: "general"
//     Bahdanau       score_j = v . tanh(W [h; s_j])    D. Bahdanau, K. Cho, Y. Bengio, 2015: "additive"
//
// S has a state per row, and all of them get their score. [h; s_j] is h with s_j below it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"

namespace day25 {

enum class Scoring { kDot, kLuong, kBahdanau };

// "dot", "luong", "bahdanau"
std::string name(Scoring scoring);

struct ScoreShape {
    std::size_t states = 0;  // how many
    std::size_t width = 0;   // of each
    std::size_t hidden = 0;  // elements of h; of a dot product: as many as `width`
    std::size_t units = 0;   // Bahdanau: rows of W

    std::size_t weight_rows(Scoring scoring) const;
    std::size_t weight_cols(Scoring scoring) const;
};

struct ScoreInputs {
    course::DeviceSpan<const float> hidden;    // h
    course::DeviceMatrix<const float> states;  // S: states x width
    // Luong: hidden x width. Bahdanau: units x (hidden + width). Dot product: 0 x 0.
    course::DeviceMatrix<const float> weight{};
    course::DeviceSpan<const float> v{};  // Bahdanau: units
};

// How many floats of workspace any version of a scoring function needs.
std::size_t score_workspace(Scoring scoring, const ScoreShape& shape);

// Queues all scores on `stream`. `scores` has an element per state and overlaps no other argument.
// `workspace` has at least score_workspace() elements of any content, overlaps no input, and must
// not be used until the work is done. Extents may be 0: an empty sum is 0. Throws
// std::invalid_argument for other arguments, CudaError if a launch fails.
using ScoreLauncher = void (*)(const ScoreInputs& inputs, course::DeviceSpan<float> scores,
                               course::DeviceSpan<float> workspace, cudaStream_t stream);

// The versions of a scoring function, slow to fast.
using ScoreVersion = course::Version<ScoreLauncher, ScoreShape>;
std::span<const ScoreVersion> score_versions(Scoring scoring);

}  // namespace day25
