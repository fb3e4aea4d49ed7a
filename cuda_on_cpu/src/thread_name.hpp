// The name of a CUDA thread in what a learner reads.
#pragma once

#include <array>

namespace cuda_on_cpu {

using ThreadName = std::array<char, 96>;

// "block 0, thread (3,1)" of the thread that runs: as many numbers as the grid, or the block, has
// dimensions. Allocates nothing.
ThreadName name_of_running_thread();

}  // namespace cuda_on_cpu
