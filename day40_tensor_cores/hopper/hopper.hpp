// The versions with Hopper's own instructions.
#pragma once

#include <vector>

#include "tensor_cores.hpp"

namespace day40 {

std::vector<Version> hopper_versions();

}  // namespace day40
