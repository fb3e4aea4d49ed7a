// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "matmul_tiled.hpp"

namespace day05 {

void multiply_plainly(Shape shape, std::span<const float> a, std::span<const float> b, std::span<float> c,
                      int threads);

}  // namespace day05
