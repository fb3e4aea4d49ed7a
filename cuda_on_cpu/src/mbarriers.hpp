// What the threads of a block do with mbarriers; a cuda::barrier is one, too. The state of one is
// its 64 bits of shared memory (mbarrier_object.hpp), which other blocks of the cluster change as
// well.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
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
        unpublished_.clear();
        attached_.clear();
    }

    void init(std::uint64_t* barrier, unsigned arrivals, Site site);
    // As a cuda::barrier: bulk copies may use it at once. NVIDIA's examples have no fence there.
    void init_for_cpp(std::uint64_t* barrier, std::int64_t arrivals, Site site);
    void inval(std::uint64_t* barrier, Site site);
    // fence.mbarrier_init: from here on bulk copies and other blocks may use what the block has
    // initialised.
    void publish();
    // `count` arrivals, after which the phase waits for so many bytes more. Returns the parity of
    // the phase in which the thread has arrived.
    unsigned arrive(std::uint64_t* barrier, std::int64_t count, std::int64_t bytes, Site site);
    // One arrival; later phases expect one fewer.
    void arrive_and_drop(std::uint64_t* barrier, Site site);
    // The same at an mbarrier of another block of the cluster: `barrier` is the same place in this
    // block's shared memory.
    void arrive_at(std::uint64_t* barrier, unsigned rank, std::int64_t count, std::int64_t bytes, Site site);
    // No arrival. Other blocks of the cluster may name the mbarrier, too.
    void expect(std::uint64_t* barrier, int bytes, Site site);
    // The running thread's pending copies (cp.async) are complete for a thread that has waited for
    // the present phase.
    void attach_copies(std::uint64_t* barrier, Site site);
    // `name`: of the operation, for reports.
    void wait(std::uint64_t* barrier, unsigned parity, Site site, const char* name = "mbarrier_wait");
    // False: the phase has not ended. After 32 such answers in a row it waits instead.
    bool test(std::uint64_t* barrier, unsigned parity, Site site);

    // The state of an mbarrier that the block may use; fails otherwise.
    MbarrierState usable(const std::uint64_t* barrier, Site site);
    // Wakes the threads that wait for a phase that has ended: of `barrier`, or (null) of any.
    bool wake_past(const std::uint64_t* barrier);
    // For which threads of the block wait.
    std::vector<std::uint64_t*> awaited() const;

  private:
    // Copies attached to phases of one mbarrier.
    struct Attached {
        unsigned parity = 0;  // of the phase that `present` belongs to
        AsyncCopies::Batch present;
        AsyncCopies::Batch complete;  // of phases that have ended, and that no thread has waited for
    };
    void check_count(const MbarrierState& state, std::int64_t count, std::int64_t bytes, Site site);
    void change(std::uint64_t* barrier, unsigned arrivals, int bytes, unsigned leaving, Site site);
    void end_phases_of(Attached& attached, const std::uint64_t* barrier);
    void complete_copies(const std::uint64_t* barrier);

    BlockRunner& block_;
    std::vector<std::uint64_t*> unpublished_;  // only this block knows of them yet
    std::unordered_map<const std::uint64_t*, Attached> attached_;
    std::array<unsigned char, kMaxThreads> early_tests_{};  // of each thread, in a row
};

}  // namespace cuda_on_cpu
