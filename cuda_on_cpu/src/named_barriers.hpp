// The named barriers 1 to 15 of a block (bar.sync, bar.arrive), each for the number of threads that
// its callers pass, and the barriers of cooperative groups' tiles of several warps.
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

    // With `waits` false the thread only arrives.
    void meet(unsigned id, unsigned threads, Site site, bool waits = true);
    // bar.red: all threads wait; the result is the number of threads for which the predicate is
    // true.
    struct Votes {
        unsigned all = 0;
        unsigned true_ones = 0;
    };
    Votes vote(unsigned id, unsigned threads, bool predicate, Site site);
    // The threads of the caller's tile of `size` (64 to 1024) synchronise; the last one to arrive
    // does the work for all.
    void meet_in_tile(unsigned size, void* operand, TileWork work, const char* name, Site site);
    // "number 3, 1 of 64 threads there"
    std::string describe(unsigned id) const;

  private:
    struct Barrier {
        unsigned expected = 0;
        unsigned arrived = 0;
    };

    // A thread that waits in vote(). The result is on the thread's stack, because the barrier may
    // be reused before the thread reads it.
    struct Vote {
        unsigned id;
        bool predicate;
        Votes* result;
    };

    // Tiles are numbered by size: 1 is the tile of 1024 threads, 2 and 3 are those of 512, ..., 16
    // to 31 those of 64.
    static constexpr unsigned kTiles = 32;
    static constexpr unsigned kNamed = 16;

    Barrier& barrier(unsigned id) { return id < kNamed ? barriers_[id] : tiles_[id - kNamed]; }
    // One more thread arrives. True: it was the last one.
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
