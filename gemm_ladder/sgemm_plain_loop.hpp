// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "sgemm.hpp"

namespace gemm {

// C = A B.
void multiply_plainly(const Shape& shape, std::span<const float> a, std::span<const float> b,
                      std::span<float> c, int threads);

}  // namespace gemm
