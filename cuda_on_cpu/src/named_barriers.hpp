// The named barriers 1 to 15 of a block (bar.sync, bar.arrive): each for as many threads as its
// callers say. And those of cooperative groups' tiles of several warps.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

class BlockRunner;

class NamedBarriers {
  public:
    explicit NamedBarriers(BlockRunner& block) : block_(block) {}
    void begin_block() {
        barriers_ = {};
        if (!tile_operands_.empty()) tiles_ = {};
        votes_.clear();
    }

    // Without waiting the thread only arrives.
    void meet(unsigned id, unsigned threads, Site site, bool waits = true);
    // bar.red: all wait, and learn for how many of them the predicate is true.
    struct Votes {
        unsigned all = 0;
        unsigned true_ones = 0;
    };
    Votes vote(unsigned id, unsigned threads, bool predicate, Site site);
    // The threads of the caller's tile of `size` (64 to 1024) meet; the last one to arrive does the
    // work for all.
    void meet_in_tile(unsigned size, void* operand, TileWork work, const char* name, Site site);
    // "number 3, 1 of 64 threads there"
    std::string describe(unsigned id) const;

  private:
    struct Barrier {
        unsigned expected = 0;
        unsigned arrived = 0;
    };

    // Of a thread that waits in vote(); the result is on its stack. The barrier may be in use for
    // the next time before it reads that.
    struct Vote {
        unsigned id;
        bool predicate;
        Votes* result;
    };

    // A tile's number: 1 for that of 1024 threads, 2 and 3 for those of 512, ..., 16 to 31 of 64.
    static constexpr unsigned kTiles = 32;
    static constexpr unsigned kNamed = 16;

    Barrier& barrier(unsigned id) { return id < kNamed ? barriers_[id] : tiles_[id - kNamed]; }
    // One thread more is there. True: it was the last one.
    bool arrive(unsigned id, unsigned threads, Site site);
    void wait(unsigned id, const char* name, Site site);
    void release(unsigned id);
    void count_votes(unsigned id);

    BlockRunner& block_;
    std::array<Barrier, kNamed> barriers_;
    std::vector<Vote> votes_;
    std::array<Barrier, kTiles> tiles_;
    std::array<TileWork, kTiles> tile_work_{};
    std::vector<void*> tile_operands_;  // of each thread; empty: no tile has met yet
};

}  // namespace cuda_on_cpu
