// The barrier of a block: __syncthreads and its relatives, and the barrier in two halves
// (barrier_arrive, barrier_wait).
#pragma once

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

class BlockRunner;

class BlockBarrier {
  public:
    explicit BlockBarrier(BlockRunner& block) : block_(block) {}
    void begin_block() { arrived_ = 0; }

    // Returns when all threads of the block that have not ended have arrived: what
    // __syncthreads_count and its like return.
    int sync(BarrierKind kind, int predicate, Site site);
    void arrive(Site site);
    void wait(Site site);
    // The running thread has ended: perhaps it was the last that the others waited for.
    void thread_ended();

  private:
    void count_arrival(BarrierKind kind, int predicate, Site site);
    void release();
    [[noreturn, gnu::cold]] void fail_at_different_barrier(BarrierKind kind, Site site);

    BlockRunner& block_;
    unsigned arrived_ = 0;
    BarrierKind kind_ = BarrierKind::sync;
    Site site_{"", 0};
    int true_count_ = 0;
    int result_ = 0;
    unsigned phase_ = 0;
};

}  // namespace cuda_on_cpu
