// The barrier of a block: __syncthreads and its variants, and the split barrier (barrier_arrive,
// barrier_wait).
#pragma once

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

class BlockRunner;

class BlockBarrier {
  public:
    explicit BlockBarrier(BlockRunner& block) : block_(block) {}
    void begin_block() { arrived_ = released_ = ended_after_one_ = 0; }

    // Waits until all live threads of the block have arrived. Returns the result of
    // __syncthreads_count, _and or _or.
    int sync(BarrierKind kind, int predicate, Site site);
    void arrive(Site site);
    void wait(Site site);
    // The running thread has ended, which releases the barrier if all other live threads have
    // arrived.
    void thread_ended();

  private:
    void count_arrival(BarrierKind kind, int predicate, Site site);
    void release();
    [[noreturn, gnu::cold]] void fail_at_different_barrier(BarrierKind kind, Site site);
    [[noreturn, gnu::cold]] void fail_without_ended_threads();

    BlockRunner& block_;
    unsigned arrived_ = 0;
    BarrierKind kind_ = BarrierKind::sync;
    Site site_{"", 0};
    int true_count_ = 0;
    int result_ = 0;
    unsigned phase_ = 0;
    unsigned released_ = 0;         // barriers of this block so far, without split ones
    unsigned ended_after_one_ = 0;  // threads that have come to a barrier, and ended
};

}  // namespace cuda_on_cpu
