// The name of a CUDA thread in messages.
#pragma once

#include <array>

namespace cuda_on_cpu {

using ThreadName = std::array<char, 96>;

// "block 0, thread (3,1)" for the running thread, with as many numbers as the grid or the block has
// dimensions. Does not allocate.
ThreadName name_of_running_thread();
// "block 0", for a block whose threads run in loops.
ThreadName name_of_running_block();

}  // namespace cuda_on_cpu
