// Illegal memory accesses of kernels: turned from SIGSEGV into what a GPU does, an error code, with a line that says
// which thread did what where.
#pragma once

namespace cuda_on_cpu {

// Gives this OS thread a stack for signal handlers. Cheap when done already.
void prepare_thread_for_faults();

}  // namespace cuda_on_cpu
