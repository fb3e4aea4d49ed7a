// A block's arrival barriers (of cuda::pipeline; cuda_on_cpu/arrival_barrier.h): a thread arrives
// at one and waits for its phase later. The table is indexed by address.
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
    // Attaches the running thread's copies to the present phase: they complete once that phase is
    // complete and a thread has waited for it.
    void attach_copies(const void* barrier, Site site);

  private:
    struct Barrier {
        std::uint64_t phase = 0;        // the present one
        std::int64_t expected = 0;      // arrivals in each phase
        std::int64_t pending = 0;       // arrivals still missing in the present phase
        std::vector<unsigned> waiting;  // threads
        AsyncCopies::Batch copies;      // of the present phase
        AsyncCopies::Batch complete;    // of earlier phases for which no thread has waited
    };
    Barrier& find(const void* barrier, Site site);
    void complete_phase(const void* barrier, Barrier& state);

    BlockRunner& block_;
    std::unordered_map<const void*, Barrier> barriers_;
};

}  // namespace cuda_on_cpu
