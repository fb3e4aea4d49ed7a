// The runtime's side of cuda_on_cpu/few_blocks.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cuda_on_cpu {

// Which of the grid's `blocks` blocks run, in ascending order; nullopt if all of them do.
std::optional<std::vector<std::uint64_t>> few_blocks_of(std::uint64_t blocks);

// The number of multiprocessors to report; 0: the actual number.
unsigned pretended_multiprocessors();

}  // namespace cuda_on_cpu
