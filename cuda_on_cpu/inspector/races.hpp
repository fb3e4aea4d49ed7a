// Happens-before between the threads of a block, and between the blocks of a launch, computed as in
// FastTrack, with epochs and vector clocks. The result does not depend on the order in which the
// threads happened to run, nor on the runtime.
//
// An epoch is a number that only grows. Each thread has one and advances it when it releases: at a
// barrier, when lanes of a warp synchronise, at a fence. An access is recorded as its thread and
// that thread's epoch. It happens before the current operation of another thread if that epoch is
// at most the entry for its thread in the other thread's vector clock. The vector clock is stored
// in three parts:
//
//   barrier of the block      one number for all threads: the first epoch after the barrier. O(threads)
//   lanes of a warp           32 x 32 numbers per warp: lane a's entry for lane b. O(lanes^2), vectorised
//   anything else             an entry for each thread (Clock), shared by threads whose entries are equal
//
// An atomic access releases what was fenced before it, and an access to the same address acquires
// it: at once with a memory order that acquires, otherwise at the thread's next fence. Without
// fences or such memory orders an atomic access does not order other accesses, as on a GPU. A
// memory order that releases is no fence: it releases by this access alone.
//
// The fence may be another thread's, if it happens before the releasing access, or after the
// acquiring one: fences are sequentially consistent (PTX: fence.sc), so of two fences one
// synchronises with the other. If it were the reader's, the reader's load would happen before the
// store whose value it has read. What a fence releases is always what happens before the fence
// itself, so one thread's fence in front of a barrier releases no other thread's writes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace.hpp"

namespace cuda_on_cpu::inspector {

using Epoch = std::uint32_t;

// A vector clock: for each thread of a block, the last epoch that happens before the current
// operation.
using Clock = std::vector<Epoch>;
using SharedClock = std::shared_ptr<const Clock>;

// The clocks that were released at a barrier: by arrivals in the current phase, and in the previous
// one.
template <class ReleasedClock>
struct Phases {
    std::shared_ptr<ReleasedClock> now;
    std::shared_ptr<const ReleasedClock> complete;
    unsigned parity = 0;

    void complete_all() { complete = std::exchange(now, nullptr); }
    // Sets the parity of the current phase: if it differs from the stored one, the stored phase is
    // complete.
    Phases& in_phase(unsigned of_parity) {
        if (std::exchange(parity, of_parity) != of_parity) complete_all();
        return *this;
    }
};

// A vector clock of a whole block. Most are an epoch for all its threads, a later one for a single
// warp, and one for a single thread. The others have an entry for each thread besides.
struct BlockClock {
    Epoch all = 0;
    Epoch of_warp = 0;
    unsigned warp = 0;
    Epoch of_thread = 0;
    unsigned thread = 0;
    SharedClock by_thread = nullptr;

    bool covers(unsigned of, Epoch then) const {
        return then <= all || (of / kLanes == warp && then <= of_warp) ||
               (of == thread && then <= of_thread) ||
               (by_thread != nullptr && of < by_thread->size() && then <= (*by_thread)[of]);
    }
    bool is_zero() const { return all == 0 && of_warp == 0 && of_thread == 0 && by_thread == nullptr; }
    void join(const BlockClock& other);
    void join(std::span<const BlockClock* const> others);
};

// Happens-before between the threads of one block at a time. Epochs continue to grow from block to
// block, so that accesses of an earlier block are ordered by their epochs alone.
class BlockOrder {
  public:
    void begin_block(unsigned threads);

    unsigned threads() const { return threads_; }
    Epoch epoch(unsigned thread) const { return epoch_[thread]; }
    // Are all lanes of the warp in the same epoch?
    bool have_one_epoch(unsigned warp) const {
        const auto first = epoch_.begin() + warp * kLanes;
        return std::all_of(first, first + kLanes, [&](Epoch epoch) { return epoch == *first; });
    }
    // Accesses of an earlier epoch happen before the current operation of every thread.
    Epoch phase_start() const { return phase_start_; }
    // The latest epoch of any thread.
    Epoch latest() const { return latest_; }

    // Does the operation of `first` in that epoch happen before the current operation of `thread`?
    bool ordered(unsigned first, Epoch then, unsigned thread) const {
        if (then < phase_start_ || first == thread) return true;
        if (first / kLanes == thread / kLanes && then <= warp_clock_[thread][first % kLanes]) return true;
        return then <= clock_of(first, thread);
    }
    // The same for all lanes of a warp in O(1). False means unknown: each lane has to be checked.
    bool all_ordered(unsigned warp, Epoch then, unsigned thread) const {
        return then < phase_start_ || (thread / kLanes == warp && then < warp_joined_[warp]);
    }

    // A barrier of all threads that have not ended. Operations of ended threads happen before it,
    // too.
    void barrier();
    // Lanes of a warp synchronise.
    void join(unsigned warp, LaneMask lanes);
    // A split barrier: operations of a thread before its arrival happen before operations of any
    // thread after its wait. all_arrived() is called after the last arrival and before the first
    // wait ends.
    enum class SplitBarrier { of_block, of_cluster };
    void arrive(unsigned thread, SplitBarrier barrier = SplitBarrier::of_block);
    void all_arrived(SplitBarrier barrier = SplitBarrier::of_block);
    void wait(unsigned thread, SplitBarrier barrier = SplitBarrier::of_block);
    // An arrival barrier, identified by its address.
    void arrive(unsigned thread, const void* barrier) { arrive(thread, at_address_[barrier]); }
    void all_arrived(const void* barrier) { at_address_[barrier].complete_all(); }
    void wait(unsigned thread, const void* barrier) { acquire(thread, at_address_[barrier].complete); }
    // An mbarrier, in the phase of that parity. A phase is known to be complete when a thread
    // arrives in the next one, or has waited.
    void arrive(unsigned thread, const void* barrier, unsigned parity) {
        arrive(thread, at_address_[barrier].in_phase(parity));
    }
    void wait(unsigned thread, const void* barrier, unsigned parity) {
        acquire(thread, at_address_[barrier].in_phase(parity ^ 1).complete);
    }
    // The barrier is initialised again.
    void reset(const void* barrier) { at_address_.erase(barrier); }
    // Bulk copies that complete at an mbarrier write as one additional thread, numbered after those
    // of the block: it arrives with each copy, and only threads that wait at the mbarrier are
    // ordered after it. If there are too many mbarriers, the last ones share a copy engine, which
    // errs towards "ordered".
    unsigned copy_engine(const void* barrier);
    static constexpr unsigned kCopyEngines = kLanes;

    // __threadfence: the thread acquires what its atomic accesses have read, and from now on they
    // release its current vector clock.
    void fence(unsigned thread);
    // The first half only; the second half only.
    void fence_to_acquire(unsigned thread);
    void fence_to_release(unsigned thread);
    // The clock that an atomic access of the thread releases at its address; null: none.
    SharedClock released(unsigned thread) const { return released_[thread]; }
    // Does an atomic access of any thread release a clock?
    bool any_released() const { return any_released_; }
    // The thread acquires a clock that was released at an address; at its next fence.
    void acquire(unsigned thread, const SharedClock& clock);
    void acquire_at_fence(unsigned thread, const SharedClock& clock);
    // Does any thread acquire a clock at its next fence?
    bool any_to_acquire() const { return any_to_acquire_; }
    // The clock that an access of the thread with a memory order that releases adds at its address.
    SharedClock release_once(unsigned thread);
    // What happens before the thread's current operation, for threads of other blocks.
    BlockClock before(unsigned thread) const;

    // A release to threads of other blocks, with a coarser clock, which errs towards "ordered".
    BlockClock release(unsigned thread);
    void acquire(unsigned thread, const BlockClock& released);

  private:
    // A thread's entries for the lanes of its own warp.
    using WarpClock = std::array<Epoch, kLanes>;

    Epoch clock_of(unsigned first, unsigned thread) const {
        const SharedClock& clock = clock_[thread];
        return clock == nullptr ? 0 : (*clock)[first];
    }
    void begin_phase();
    // The last epoch of other lanes of its warp that happens before the thread's operations.
    Epoch known_of_warp(unsigned thread) const;
    // What happens before the thread's current operation since the last barrier.
    std::shared_ptr<Clock> clock_before(unsigned thread) const;
    void advance(unsigned thread) { latest_ = std::max(latest_, ++epoch_[thread]); }

    unsigned threads_ = 0;
    Epoch latest_ = 0;
    Epoch phase_start_ = 0;
    // For each thread and copy engine.
    std::vector<Epoch> epoch_;
    std::vector<WarpClock> warp_clock_;
    // For each warp: operations of its lanes before this epoch are ordered for all its lanes.
    std::vector<Epoch> warp_joined_;
    // For each thread: the clock that it acquired otherwise since the last barrier; null: none.
    std::vector<SharedClock> clock_;
    bool any_clock_ = false;
    std::vector<SharedClock> released_;
    bool any_released_ = false;
    // For each thread: what it acquires at its next fence.
    std::vector<SharedClock> to_acquire_;
    bool any_to_acquire_ = false;
    // For each warp, the lanes that exist in the block.
    std::vector<LaneMask> live_lanes_;
    using ThreadPhases = Phases<Clock>;
    ThreadPhases& arrivals(SplitBarrier barrier) { return arrivals_[static_cast<std::size_t>(barrier)]; }
    void arrive(unsigned thread, ThreadPhases& barrier);
    std::array<ThreadPhases, 2> arrivals_;
    std::unordered_map<const void*, ThreadPhases> at_address_;
    std::unordered_map<const void*, unsigned> copy_engines_;  // in the order of their first copies
};

// The element-wise maximum. A clock that is shorter has zeros behind its end.
SharedClock join(const SharedClock& a, const SharedClock& b);

// --- Between blocks ------------------------------------------------------------------------------

// A block's vector clock over the watched blocks of its launch, indexed by their numbers. It is
// shorter if the entries of the later blocks are 0.
using BlockClocks = std::vector<BlockClock>;
using SharedBlockClocks = std::shared_ptr<const BlockClocks>;

// Happens-before between a running block and the others of its launch. One object per running
// block. It is coarser than BlockOrder, and always errs towards "ordered": what a thread passes on
// within its block, other than at a barrier or where lanes synchronise, counts as acquired, and as
// fenced, by the whole block. A block that is not watched only passes on the clocks it has
// acquired.
class GridOrder {
  public:
    static constexpr unsigned kNotWatched = ~0u;

    static bool covers(const SharedBlockClocks& clocks, unsigned block, unsigned thread, Epoch then) {
        return clocks != nullptr && block < clocks->size() && (*clocks)[block].covers(thread, then);
    }

    // `number` is the block's index among the watched blocks of the launch.
    void begin_block(unsigned number);
    unsigned number() const { return number_; }
    // Does that operation of a thread of another block happen before the current operation of all
    // threads; of thread `now`?
    bool ordered(unsigned block, unsigned thread, Epoch then) const {
        return covers(clocks_, block, thread, then);
    }
    bool ordered(unsigned block, unsigned thread, Epoch then, unsigned now) const {
        return ordered(block, thread, then) ||
               (any_of_thread_ && now < kMostThreads && covers(of_thread_[now], block, thread, then));
    }

    // A fence of a thread; `before` happens before it.
    void fence(unsigned thread, const BlockClock& before);
    // After a barrier of the block, the fences that its threads executed before it happen before
    // the operations of all threads, and what one of them has acquired all have.
    void barrier();
    // The same for lanes of a warp that synchronise.
    void join(unsigned warp, LaneMask lanes);
    // For an atomic access of the thread: returns the clock at the address after it; null: none.
    SharedBlockClocks release(unsigned thread, const SharedBlockClocks& at_address) const;
    // The same for one with a memory order that releases; `own` happens before it.
    SharedBlockClocks release(unsigned thread, const BlockClock& own,
                              const SharedBlockClocks& at_address) const;
    // For an arrival at a barrier of several blocks, or of another block: returns the clock there
    // after it.
    SharedBlockClocks release(const BlockClock& own, const SharedBlockClocks& at_address) const;
    void acquire(const SharedBlockClocks& at_address);
    // For a single thread of the block.
    void acquire(unsigned thread, const SharedBlockClocks& at_address);
    // What the thread has acquired, and fenced, the whole block has.
    void pass_on(unsigned thread) {
        if (thread >= kMostThreads) return;
        if (any_of_thread_) acquire(of_thread_[thread]);
        if (!fenced_threads_.empty()) fenced_block_.join(fenced_thread_[thread]);
    }

  private:
    static constexpr unsigned kMostThreads = 1024;
    unsigned number_ = kNotWatched;
    // What all threads have acquired.
    SharedBlockClocks clocks_;
    std::vector<SharedBlockClocks> of_thread_{kMostThreads};
    bool any_of_thread_ = false;
    // What happens before fences that happen before the operations of all threads.
    bool fenced_ = false;
    BlockClock fenced_block_;
    // The same for each thread, since the last barrier; and the threads that have such a clock.
    std::vector<BlockClock> fenced_thread_{kMostThreads};
    std::vector<unsigned> fenced_threads_;
};

SharedBlockClocks join(const SharedBlockClocks& a, const SharedBlockClocks& b);

}  // namespace cuda_on_cpu::inspector
