// Programmatic dependent launch: a grid may begin before the previous grid has ended. Here it
// begins afterwards, which is one of the orders that CUDA allows, so there is never anything to
// wait for. An inspection looks for accesses before the wait to what the previous grid accesses.
#pragma once

namespace cuda_on_cpu {
// The thread has waited for the previous grid.
void await_previous_grid();
}  // namespace cuda_on_cpu

inline void cudaGridDependencySynchronize() {
    cuda_on_cpu::await_previous_grid();
}
inline void cudaTriggerProgrammaticLaunchCompletion() {}
