// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "softmax.hpp"

namespace day20 {

void softmax_plainly(std::span<const float> in, std::span<float> out, int threads);

}  // namespace day20
