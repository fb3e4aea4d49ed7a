// The versions with Hopper's own instructions.
#pragma once

#include <vector>

#include "eight_bit.hpp"

namespace day40::eight_bit {

std::vector<Version> hopper_versions();

}  // namespace day40::eight_bit
