// Why the threads of a block cannot go on, in words. Nothing here changes the block.
#pragma once

#include <string>

namespace cuda_on_cpu {

class BlockRunner;

// "deadlock in block (0,0,0): 2 thread(s) wait and none can go on", and where they wait, in lines
// of their own: also those of the cluster's other blocks, where all of these wait for each other.
std::string describe_deadlock(const BlockRunner& block);

// The running thread: "block (0,0,0), thread (5,0,0)".
std::string running_thread();

}  // namespace cuda_on_cpu
