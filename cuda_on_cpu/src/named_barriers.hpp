// The named barriers 1 to 15 of a block (bar.sync, bar.arrive): each for as many threads as its
// callers say.
#pragma once

#include <array>
#include <string>

#include "cuda_on_cpu/language.h"

namespace cuda_on_cpu {

class BlockRunner;

class NamedBarriers {
  public:
    explicit NamedBarriers(BlockRunner& block) : block_(block) {}
    void begin_block() { barriers_ = {}; }

    // Without waiting the thread only arrives.
    void meet(unsigned id, unsigned threads, Site site, bool waits = true);
    // "1 of 64 threads there"
    std::string describe(unsigned id) const;

  private:
    struct Barrier {
        unsigned expected = 0;
        unsigned arrived = 0;
    };

    BlockRunner& block_;
    std::array<Barrier, 16> barriers_;
};

}  // namespace cuda_on_cpu
