// Day 29, beyond: speculative decoding. A small draft model proposes several tokens, and the large
// target model computes the distributions of all of them in one step. Tokens are then accepted or
// rejected so that the results are distributed exactly as if the target alone had drawn them.
//
// Method: Y. Leviathan, M. Kalman, Y. Matias, "Fast Inference from Transformers via Speculative
// Decoding", 2023; C. Chen and others, "Accelerating Large Language Model Decoding with Speculative
// Sampling", 2023.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <vector>

#include "common/device/device_view.hpp"

namespace day29 {

inline constexpr std::size_t kMostDrafted = 16;

// Row r of the draft's and of the target's logits is for the token at position r. All arrays are
// packed.
struct Speculation {
    std::size_t batch = 0;
    std::size_t drafted = 1;                        // tokens that the draft proposes: 1 to kMostDrafted
    std::size_t vocabulary = 1;                     // 1 to 2^20
    course::DeviceSpan<const float> draft_logits;   // [batch, drafted, vocabulary]
    course::DeviceSpan<const float> target_logits;  // [batch, drafted + 1, vocabulary]
    course::DeviceSpan<const int> proposed;         // [batch, drafted], drawn from the draft's softmax
    // [batch, drafted + 1], from 0 to below 1: one for each decision, the last for the token that
    // the target adds.
    course::DeviceSpan<const float> uniform;
    course::DeviceSpan<int> accepted;  // [batch]: how many proposed tokens are kept
    course::DeviceSpan<int> token;     // [batch]: the token that follows them
};

// With p the target's softmax and q the draft's, token x of a position is accepted if uniform <
// min(1, p(x) / q(x)). At the first rejection the next token is drawn from max(p - q, 0), divided
// by its sum, or from p where no p - q is above 0; if all are accepted, from p of the last row. It
// is the first token whose cumulated probability is above the last uniform number. A proposed token
// out of range is rejected, and so is one of a row with a NaN; if p is NaN, the next token is 0.
// Throws std::invalid_argument for sizes that do not fit; CudaError if a launch fails.
void accept(const Speculation& speculation, cudaStream_t stream);

// The same for one sequence in double.
struct Accepted {
    int accepted = 0;
    int token = 0;
};
Accepted accept_on_cpu(std::size_t drafted, std::size_t vocabulary, std::span<const float> draft_logits,
                       std::span<const float> target_logits, std::span<const int> proposed,
                       std::span<const float> uniform);

// Can rounding lead to these results? A uniform number that is nearer to its threshold than
// rounding may fall to either side. So a decision may differ from that of accept_on_cpu(). The draw
// may take another token, but only one whose cumulated probability is near the threshold.
bool may_be_right(const Accepted& got, std::size_t drafted, std::size_t vocabulary,
                  std::span<const float> draft_logits, std::span<const float> target_logits,
                  std::span<const int> proposed, std::span<const float> uniform);

}  // namespace day29
