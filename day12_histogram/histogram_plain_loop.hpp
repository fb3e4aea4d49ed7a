// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "histogram.hpp"

namespace day12 {

// All values lie in `range`, and bytes have 256 bins.
void count_plainly(std::span<const std::uint8_t> values, Range range, std::span<Counter> counts, int threads);
void count_plainly(std::span<const std::int32_t> values, Range range, std::span<Counter> counts, int threads);

}  // namespace day12
