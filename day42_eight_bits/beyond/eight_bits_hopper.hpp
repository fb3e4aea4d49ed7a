// The versions with Hopper's own instructions.
#pragma once

#include <vector>

#include "eight_bits.hpp"

namespace day42 {

std::vector<Version> hopper_versions();

}  // namespace day42
