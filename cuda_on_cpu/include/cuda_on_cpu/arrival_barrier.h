// Barriers at which threads of a block arrive and for which they wait, each at its own time: those
// of the stages of a cuda::pipeline. (A cuda::barrier is an mbarrier: ptx_async.h.)
//
// A barrier is an address in the block's shared memory: nothing is stored there. It has phases,
// counted from 0. A phase is complete after as many arrivals as are expected; then the next one
// begins. Copies attached to a phase are there for everybody once a thread has waited for it.
#pragma once

#include <cstdint>

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

// Begins phase 0. An error: an address outside the block's shared memory, or an expected count of
// 0.
void init_arrival_barrier(const void* barrier, std::int64_t expected, Site site);

// Of the functions below an error: a barrier that was not initialised.

// `count` arrivals in the present phase, whose number it returns. An error: more than are still
// expected.
std::uint64_t arrive_at(const void* barrier, std::int64_t count, Site site);
// The pending asynchronous copies of this thread belong to the present phase: they are complete for
// threads that have waited for it.
void attach_copies_to(const void* barrier, Site site);
// Waits until the phase is complete. `name` is the operation, for reports.
void wait_for_phase(const void* barrier, std::uint64_t phase, const char* name, Site site);

}  // namespace cuda_on_cpu
