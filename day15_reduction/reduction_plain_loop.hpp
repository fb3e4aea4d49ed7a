// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "reduction.hpp"

namespace day15 {

// The sum of floats is a float: among 2^28 numbers up to 8 it is exact.
template <class Op>
typename Op::Result reduce_plainly(std::span<const typename Op::Element> in, int threads);

}  // namespace day15
