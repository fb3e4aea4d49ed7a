// Instructions that several lanes of a warp execute together: shuffles, votes, matrix instructions,
// __activemask. Each lane stores a pointer to its operand; the last lane to arrive does the work
// for all of them.
#pragma once

#include <string>

#include "cuda_on_cpu/thread.h"
#include "warp.hpp"

namespace cuda_on_cpu {

class BlockRunner;

class Collectives {
  public:
    explicit Collectives(BlockRunner& block) : block_(block) {}

    // The running lane arrives; returns when all lanes of the mask have arrived. `named`: the mask
    // as the kernel wrote it.
    void meet(unsigned named, void* operand, CollectiveWork work, const char* name, Site site, Ended ended);
    // Returns the lanes that wait at the same place when no other lane of the warp can run
    // (__activemask).
    LaneMask converged(const char* name, Site site);
    // Called when no other lane of the warp can run: lanes that wait in __activemask at the same
    // place count as converged.
    void converge(unsigned w);
    // The running thread has ended, which may complete a collective of its warp.
    void thread_ended(Warp& warp);
    // See note_undefined_shuffle().
    [[gnu::cold]] void tell_undefined_shuffle(LaneMask mask, unsigned source, const char* name,
                                              Site site) const;

  private:
    bool refuses(Ended ended) const;
    void complete(Warp& warp, unsigned g);
    // Out of line, to keep the hot path short.
    [[noreturn, gnu::cold]] void fail(const std::string& message, Site site);
    [[noreturn, gnu::cold]] void fail_on_mask(LaneMask mask, const char* name, Site site);
    [[noreturn, gnu::cold]] void fail_in_different_collective(const Group& group, const char* name,
                                                              Site site);
    [[noreturn, gnu::cold]] void fail_on_end(const Warp& warp, LaneMask self, Site site);

    BlockRunner& block_;
};

}  // namespace cuda_on_cpu
