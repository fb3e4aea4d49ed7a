// Candidates for the last versions of day 6, to be measured and then removed.
#pragma once

#include <span>

#include "transpose.hpp"

namespace day06 {

std::span<const Transpose> candidates();  // words only

}  // namespace day06
