// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "merge.hpp"

namespace day18 {

void merge_plainly(const SortedOnCpu& a, const SortedOnCpu& b, const OutputOnCpu& out, int threads);

}  // namespace day18
