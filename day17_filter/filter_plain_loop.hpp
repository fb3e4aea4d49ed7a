// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "filter.hpp"

namespace day17 {

void filter_plainly(Operation operation, std::span<const std::int32_t> in, std::int32_t threshold,
                    std::span<std::int32_t> out, int threads);

}  // namespace day17
