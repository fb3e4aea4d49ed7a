#pragma once

#include <span>

#include "profiling.hpp"

namespace day07 {

// Of mystery 1, 2, ..., before they are repaired.
std::span<const Launch> slow_launches();

}  // namespace day07
