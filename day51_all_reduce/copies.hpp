// The versions of day 51 that the host drives: copies, events, and NCCL's. Each is a Launcher.
#pragma once

#include "all_reduce.hpp"

namespace day51 {

void gather(Group& group, const Arrays& arrays);
void ring(Group& group, const Arrays& arrays);
void nccl(Group& group, const Arrays& arrays);  // std::invalid_argument where it is missing

}  // namespace day51
