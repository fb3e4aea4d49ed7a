// A block's arrival barriers (of cuda::pipeline; cuda_on_cpu/arrival_barrier.h): threads arrive at
// them and wait for their phases, each at its own time. They are a table, by address.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "async_copies.hpp"
#include "cuda_on_cpu/language.h"

namespace cuda_on_cpu {

class BlockRunner;

class ArrivalBarriers {
  public:
    explicit ArrivalBarriers(BlockRunner& block) : block_(block) {}
    void begin_block() { barriers_.clear(); }

    void init(const void* barrier, std::int64_t expected, Site site);
    // Returns the phase in which the thread has arrived.
    std::uint64_t arrive(const void* barrier, std::int64_t count, Site site);
    void wait_for_phase(const void* barrier, std::uint64_t phase, const char* name, Site site);
    // The running thread's copies are complete when the present phase is, and a thread has waited
    // for it.
    void attach_copies(const void* barrier, Site site);

  private:
    struct Barrier {
        std::uint64_t phase = 0;        // the present one
        std::int64_t expected = 0;      // arrivals in each phase
        std::int64_t pending = 0;       // of them, those that the present phase still waits for
        std::vector<unsigned> waiting;  // threads
        AsyncCopies::Batch copies;      // of the present phase
        AsyncCopies::Batch complete;    // of phases before, which no thread has waited for
    };
    Barrier& find(const void* barrier, Site site);
    void complete_phase(const void* barrier, Barrier& state);

    BlockRunner& block_;
    std::unordered_map<const void*, Barrier> barriers_;
};

}  // namespace cuda_on_cpu
