// Instructions that several lanes of a warp execute together: shuffles, votes, matrix instructions,
// __activemask. Each lane leaves a pointer to its operand; the last one to arrive does the work for
// all.
#pragma once

#include "cuda_on_cpu/thread.h"
#include "warp.hpp"

namespace cuda_on_cpu {

class BlockRunner;

class Collectives {
  public:
    explicit Collectives(BlockRunner& block) : block_(block) {}

    // The running lane arrives; returns when the lanes of the mask have met. `named`: the mask as
    // the kernel wrote it.
    void meet(unsigned named, void* operand, CollectiveWork work, const char* name, Site site, Ended ended);
    // Which lanes wait at the same place when no other lane of the warp can run.
    LaneMask converged(const char* name, Site site);
    // No other lane of the warp can run: the lanes that wait at one place are together.
    void converge(unsigned w);
    // The running thread has ended: its warp's other lanes may have waited for it.
    void thread_ended(Warp& warp);

  private:
    bool refuses(Ended ended) const;
    void complete(Warp& warp, unsigned g);
    // Out of line, so that what leads to them stays short.
    [[noreturn, gnu::cold]] void fail_on_mask(LaneMask mask, const char* name, Site site);
    [[noreturn, gnu::cold]] void fail_in_different_collective(const Group& group, const char* name,
                                                              Site site);
    [[noreturn, gnu::cold]] void fail_on_end(const Group& group);

    BlockRunner& block_;
};

}  // namespace cuda_on_cpu
