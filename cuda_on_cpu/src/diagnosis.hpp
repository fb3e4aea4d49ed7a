// Describes why the threads of a block cannot continue. Nothing here changes the block.
#pragma once

#include <string>

namespace cuda_on_cpu {

class BlockRunner;

// "deadlock in block (0,0,0): 2 thread(s) wait and none can go on", followed by one line per place
// where they wait. If all blocks of a cluster wait for each other, the threads of the other blocks
// are listed as well.
std::string describe_deadlock(const BlockRunner& block);

// The running thread: "block (0,0,0), thread (5,0,0)".
std::string running_thread();

}  // namespace cuda_on_cpu
