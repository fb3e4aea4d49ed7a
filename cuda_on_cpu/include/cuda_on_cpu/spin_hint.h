#pragma once

namespace cuda_on_cpu {

// Says that the calling CUDA thread may be waiting for another: lets the others of its block, and other blocks, run.
// On a GPU they would run anyway; here a thread runs until it gives way.
void spin_hint();

}  // namespace cuda_on_cpu
