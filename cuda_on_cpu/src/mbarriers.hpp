// Operations of a block's threads on mbarriers; a cuda::barrier is one as well. The state of an
// mbarrier is 64 bits of shared memory (mbarrier_object.hpp), which other blocks of the cluster may
// change too.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "async_copies.hpp"
#include "cuda_on_cpu/language.h"
#include "mbarrier_object.hpp"
#include "warp.hpp"

namespace cuda_on_cpu {

class BlockRunner;

class Mbarriers {
  public:
    explicit Mbarriers(BlockRunner& block) : block_(block) {}
    void begin_block() {
        live_.clear();
        unpublished_.clear();
        attached_.clear();
    }

    // PTX ISA: initialising a valid mbarrier is undefined. inval() must come first.
    void init(std::uint64_t* barrier, unsigned arrivals, Site site);
    // Initialises a cuda::barrier. Bulk copies may use it at once, because NVIDIA's examples have
    // no fence there.
    void init_for_cpp(std::uint64_t* barrier, std::int64_t arrivals, Site site);
    void inval(std::uint64_t* barrier, Site site);
    // fence.mbarrier_init: from here on bulk copies and other blocks may use the mbarriers that the
    // block has initialised.
    void publish();
    // Makes `count` arrivals and adds `bytes` to the bytes for which the phase waits. Returns the
    // parity of the phase in which the thread has arrived.
    unsigned arrive(std::uint64_t* barrier, std::int64_t count, std::int64_t bytes, Site site);
    // One arrival; later phases expect one fewer.
    void arrive_and_drop(std::uint64_t* barrier, Site site);
    // arrive() at an mbarrier of another block of the cluster: `barrier` is the same offset in this
    // block's shared memory.
    void arrive_at(std::uint64_t* barrier, unsigned rank, std::int64_t count, std::int64_t bytes, Site site);
    // Adds expected bytes without an arrival. Other blocks of the cluster may also use this
    // mbarrier.
    void expect(std::uint64_t* barrier, int bytes, Site site);
    // Attaches the running thread's pending copies (cp.async) to the present phase: they are
    // complete once a thread has waited for it.
    void attach_copies(std::uint64_t* barrier, Site site);
    // `name`: of the operation, for reports.
    void wait(std::uint64_t* barrier, unsigned parity, Site site, const char* name = "mbarrier_wait");
    // False: the phase has not ended. After 32 unsuccessful tests in a row the thread waits
    // instead.
    bool test(std::uint64_t* barrier, unsigned parity, Site site);

    // The state of the mbarrier; fails if the block may not use it.
    MbarrierState usable(const std::uint64_t* barrier, Site site);
    // Wakes the threads whose phase has ended: those at `barrier`, or at any mbarrier if it is
    // null.
    bool wake_past(const std::uint64_t* barrier);
    // The mbarriers at which threads of the block wait.
    std::vector<std::uint64_t*> awaited() const;

  private:
    // Copies attached to phases of one mbarrier.
    struct Attached {
        unsigned parity = 0;  // of the phase that `present` belongs to
        AsyncCopies::Batch present;
        AsyncCopies::Batch complete;  // of ended phases for which no thread has waited
    };
    void check_count(const MbarrierState& state, std::int64_t count, std::int64_t bytes, Site site);
    void change(std::uint64_t* barrier, unsigned arrivals, int bytes, unsigned leaving, Site site);
    void end_phases_of(Attached& attached, const std::uint64_t* barrier);
    void complete_copies(const std::uint64_t* barrier);

    BlockRunner& block_;
    std::unordered_set<const std::uint64_t*> live_;  // initialised and not invalidated since
    std::vector<std::uint64_t*> unpublished_;        // only this block may use them yet
    std::unordered_map<const std::uint64_t*, Attached> attached_;
    std::array<unsigned char, kMaxThreads> early_tests_{};  // consecutive unsuccessful tests of each thread
};

}  // namespace cuda_on_cpu
