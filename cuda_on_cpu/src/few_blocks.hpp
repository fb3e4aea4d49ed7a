// What cuda_on_cpu/few_blocks.h asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cuda_on_cpu {

// The blocks of a grid of `blocks` that run, in ascending order; nothing where all do.
std::optional<std::vector<std::uint64_t>> few_blocks_of(std::uint64_t blocks);

// Multiprocessors that the device seems to have; 0: as many as it has.
unsigned pretended_multiprocessors();

}  // namespace cuda_on_cpu
