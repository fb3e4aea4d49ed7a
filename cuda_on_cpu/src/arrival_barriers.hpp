// The state of a block's arrival barriers (cuda_on_cpu/arrival_barrier.h), by their addresses.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "async_copies.hpp"

namespace cuda_on_cpu {

struct ArrivalBarrier {
    std::uint64_t phase = 0;        // the present one
    std::int64_t expected = 0;      // arrivals in each phase
    std::int64_t pending = 0;       // of them, those that the present phase still waits for
    std::int64_t leaving = 0;       // fewer will be expected in the next phase
    std::vector<unsigned> waiting;  // threads
    AsyncCopies::Batch copies;      // of the present phase
    AsyncCopies::Batch complete;    // of phases before, which nobody has waited for
};

// Of the block that runs.
using ArrivalBarriers = std::unordered_map<const void*, ArrivalBarrier>;

}  // namespace cuda_on_cpu
