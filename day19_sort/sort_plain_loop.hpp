// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "sort.hpp"

namespace day19 {

// std::sort, or that of libstdc++'s parallel mode.
void sort_plainly(std::span<const Key> in, std::span<Key> out, int threads);

}  // namespace day19
