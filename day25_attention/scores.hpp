// Scoring functions: how well does each state of an encoder match the state h of a decoder? The host API of day 25's first part.
//
//     dot product    score_j = h . s_j
//     Luong          score_j = h^T W s_j                              M.-T. Luong, H. Pham, C. Manning, 2015: "general"
//     Bahdanau       score_j = v . tanh(W [h; s_j])                   D. Bahdanau, K. Cho, Y. Bengio, 2015: "additive"
//
// All states of a step at once: S has a state per row. [h; s_j] is h with s_j below it.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "common/bench/variant.hpp"
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

// How many floats any version of a scoring function needs to leave results in between.
std::size_t score_workspace(Scoring scoring, const ScoreShape& shape);

// Queues all scores on `stream`. `scores` has an element per state and overlaps nothing else; `workspace` has score_workspace()
// elements or more, any content, overlaps no input, and belongs to this work until it is done. Extents may be 0: an empty sum is 0.
// Throws std::invalid_argument for arguments unlike that, CudaError when a launch fails.
using ScoreLauncher = void (*)(const ScoreInputs& inputs, course::DeviceSpan<float> scores,
                               course::DeviceSpan<float> workspace, cudaStream_t stream);

// The versions of a scoring function, slow to fast.
using Scorer = course::Variant<ScoreLauncher, ScoreShape>;
std::span<const Scorer> scorers(Scoring scoring);

}  // namespace day25
