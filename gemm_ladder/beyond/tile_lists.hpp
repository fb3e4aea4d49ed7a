// The two halves of tiles(): each has a file of its own, so that they are compiled at the same time.
#pragma once

#include <vector>

#include "tiles.hpp"

namespace gemm {

std::vector<TileKernels> large_tiles();
std::vector<TileKernels> small_tiles();

}  // namespace gemm
