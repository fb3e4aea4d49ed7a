// Barriers with separate arrive and wait operations for the threads of a block: the stages of a
// cuda::pipeline use them. (A cuda::barrier is an mbarrier: ptx_async.h.)
//
// A barrier is identified by an address in the block's shared memory; nothing is stored there. It
// has phases, counted from 0. A phase is complete after the expected number of arrivals; then the
// next one begins. The data of copies attached to a phase is visible to each thread that has waited
// for the phase.
#pragma once

#include <cstdint>

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

// Begins phase 0. It is an error if the address is outside the block's shared memory, or if the
// expected count is 0.
void init_arrival_barrier(const void* barrier, std::int64_t expected, Site site);

// For all functions below, a barrier that was not initialised is an error.

// Performs `count` arrivals in the current phase and returns the number of that phase. More
// arrivals than are still expected are an error.
std::uint64_t arrive_at(const void* barrier, std::int64_t count, Site site);
// Attaches the pending asynchronous copies of this thread to the current phase: they are complete
// for threads that have waited for it.
void attach_copies_to(const void* barrier, Site site);
// Waits until the phase is complete. `name` is the operation, for reports.
void wait_for_phase(const void* barrier, std::uint64_t phase, const char* name, Site site);

}  // namespace cuda_on_cpu
