// The versions with Hopper's own instructions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tensor_cores.hpp"

namespace day40 {

std::vector<Version> hopper_versions();

// The tiles that `fitted` chooses from; two of them are versions themselves.
std::span<const Version> tiles_to_choose_from();

// The name of the one that it takes for a shape, on a GPU with so many multiprocessors.
std::string tile_for(const Shape& shape, std::size_t multiprocessors);

}  // namespace day40
