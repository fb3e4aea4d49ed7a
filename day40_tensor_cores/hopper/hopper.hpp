// The versions with Hopper's own instructions.
#pragma once

#include <span>
#include <vector>

#include "tensor_cores.hpp"

namespace day40 {

std::vector<Version> hopper_versions();

// The tiles that `fitted` chooses from; two of them are versions themselves.
std::span<const Version> tiles_to_choose_from();

}  // namespace day40
