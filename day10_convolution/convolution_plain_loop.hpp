// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "convolution.hpp"

namespace day10 {

// The border is replicated.
template <class T>
void convolve_plainly(std::span<const T> in, std::size_t rows, std::size_t cols, std::size_t channels,
                      const Filter& filter, std::span<T> out, int threads);

}  // namespace day10
