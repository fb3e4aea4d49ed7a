// What a programmer would write first for the CPU: a peer of the day's program, on so many threads.
#pragma once

#include <span>

#include "mri.hpp"

namespace day37 {

void sum_plainly(const HostSamples& k, const HostPositions& voxels, std::span<float> re, std::span<float> im,
                 int threads);

}  // namespace day37
