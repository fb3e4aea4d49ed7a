// What the threads of a block do with mbarriers. The state of one is its 64 bits of shared memory
// (mbarrier.hpp), which other blocks of the cluster change as well.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cuda_on_cpu/language.h"
#include "mbarrier.hpp"
#include "warp.hpp"

namespace cuda_on_cpu {

class BlockRunner;

class Mbarriers {
  public:
    explicit Mbarriers(BlockRunner& block) : block_(block) {}
    void begin_block() { unpublished_.clear(); }

    void init(std::uint64_t* barrier, unsigned arrivals, Site site);
    void inval(std::uint64_t* barrier, Site site);
    // fence.mbarrier_init: from here on bulk copies and other blocks may use what the block has
    // initialised.
    void publish();
    void arrive(std::uint64_t* barrier, unsigned bytes, Site site);
    // At the same place in shared memory of another block of the cluster.
    void arrive_at(std::uint64_t* barrier, unsigned rank, Site site);
    void expect(std::uint64_t* barrier, int bytes, Site site);
    void wait(std::uint64_t* barrier, unsigned parity, Site site);
    // False: the phase has not ended. After 32 such answers in a row it waits instead.
    bool test(std::uint64_t* barrier, unsigned parity, Site site);

    // The state of an mbarrier that the block may use; fails otherwise.
    MbarrierState usable(const std::uint64_t* barrier, Site site);
    // Wakes the threads that wait for a phase that has ended: of `barrier`, or (null) of any.
    bool wake_past(const std::uint64_t* barrier);
    // For which threads of the block wait.
    std::vector<std::uint64_t*> awaited() const;

  private:
    void change(std::uint64_t* barrier, unsigned arrivals, int bytes, Site site);

    BlockRunner& block_;
    std::vector<std::uint64_t*> unpublished_;               // only this block knows of them yet
    std::array<unsigned char, kMaxThreads> early_tests_{};  // of each thread, in a row
};

}  // namespace cuda_on_cpu
