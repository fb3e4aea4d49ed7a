// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "transpose.hpp"

namespace day06 {

void transpose_plainly(std::span<const std::uint32_t> in, std::size_t rows, std::size_t cols,
                       std::span<std::uint32_t> out, int threads);
void transpose_plainly(std::span<const std::uint16_t> in, std::size_t rows, std::size_t cols,
                       std::span<std::uint16_t> out, int threads);

}  // namespace day06
