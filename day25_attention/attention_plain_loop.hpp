// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "attention.hpp"

namespace day25 {

// Packed rows; width = value_width.
void attention_plainly(const AttentionShape& shape, std::span<const float> q, std::span<const float> k,
                       std::span<const float> v, float scale, std::span<float> out, int threads);

}  // namespace day25
