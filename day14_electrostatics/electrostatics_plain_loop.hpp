// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "electrostatics.hpp"

namespace day14 {

// A cutoff of 0: none.
void potential_plainly(std::span<const Atom> atoms, const Grid& grid, float cutoff,
                       std::span<float> potential, int threads);

}  // namespace day14
