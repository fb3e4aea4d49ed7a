// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "quantization.hpp"

namespace day30 {

// Symmetric, per row. For normal numbers.
void quantize_rows_plainly(std::size_t rows, std::size_t cols, std::span<const float> in,
                           std::span<std::int8_t> out, std::span<float> scale, int threads);

}  // namespace day30
