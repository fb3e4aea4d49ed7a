// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "conv_layers.hpp"

namespace day28 {

// The forward pass.
void forward_plainly(const Shape& shape, std::span<const float> x, std::span<const float> w,
                     std::span<float> y, int threads);

}  // namespace day28
