// Which of two accesses came first, whatever the order in which threads happened to run:
// happens-before between the threads of a block, and between the blocks of a launch. Pure: knows
// nothing of the runtime.
//
// Time is a number that only grows, the epoch. Every thread has one, and goes to a later one when
// it releases something to others: at a barrier, when lanes of a warp synchronise, at a fence. An
// access is remembered with its thread and that thread's epoch; it came before what a thread does
// now if the thread has heard of that epoch.
//
//   barrier of the block      one number says it for all: everybody has heard of everything before it. O(threads)
//   lanes of a warp           a table of 32 x 32 numbers per warp: which epoch of lane b has lane a heard of. O(lanes^2), vectorised
//   anything else             a vector of all threads (Clock), shared by all who have heard of the same
//
// Atomic accesses carry what was fenced before them: who touches the atomic afterwards has heard of
// it (release and acquire at the address). Without __threadfence(), or a memory order that says it,
// an atomic orders nothing but itself, as on a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "event.hpp"

namespace cuda_on_cpu::inspector {

using Epoch = std::uint32_t;

// Of each thread of a block, the last epoch that is known.
using Clock = std::vector<Epoch>;
using SharedClock = std::shared_ptr<const Clock>;

// What has been told at a barrier: in the phase under way, and in the one before it.
template <class Knowledge>
struct Arrivals {
    std::shared_ptr<Knowledge> now;
    std::shared_ptr<const Knowledge> complete;
    unsigned parity = 0;

    void complete_all() { complete = std::exchange(now, nullptr); }
    // The phase of that parity is under way.
    Arrivals& in_phase(unsigned of_parity) {
        if (std::exchange(parity, of_parity) != of_parity) complete_all();
        return *this;
    }
};

// What is known of one block: everything up to an epoch, and of one warp more than that.
struct BlockKnowledge {
    Epoch all = 0;
    Epoch of_warp = 0;
    unsigned warp = 0;

    bool covers(unsigned thread, Epoch then) const {
        return then <= all || (thread / kLanes == warp && then <= of_warp);
    }
    void join(const BlockKnowledge& other);
};

// The threads of one block at a time. Epochs go on growing from block to block, so that what was
// remembered in an earlier block is old by itself.
class BlockOrder {
  public:
    void begin_block(unsigned threads);

    unsigned threads() const { return threads_; }
    Epoch epoch(unsigned thread) const { return epoch_[thread]; }
    // Everything of an epoch before this one is known to all.
    Epoch phase_start() const { return phase_start_; }
    // The epoch of the thread that is furthest.
    Epoch latest() const { return latest_; }

    // Did what `first` did in that epoch come before what `thread` does now?
    bool ordered(unsigned first, Epoch then, unsigned thread) const {
        if (then < phase_start_ || first == thread) return true;
        if (first / kLanes == thread / kLanes && then <= heard_[thread][first % kLanes]) return true;
        return then <= beyond_warp_of(first, thread);
    }
    // Did what these lanes of a warp did in that epoch all come before what `thread` does now?
    // O(1); false: ask for each.
    bool all_ordered(unsigned warp, Epoch then, unsigned thread) const {
        return then < phase_start_ || (thread / kLanes == warp && then < warp_joined_[warp]);
    }

    // All threads that have not ended have come together; those that have ended are known to them
    // too.
    void barrier();
    // Lanes of a warp have come together.
    void join(unsigned warp, LaneMask lanes);
    // A barrier in two halves: what a thread did before it arrived is known to all who have waited.
    // all_arrived() stands between the last arrival and the first who goes on.
    enum class Halves { of_block, of_cluster };
    void arrive(unsigned thread, Halves barrier = Halves::of_block);
    void all_arrived(Halves barrier = Halves::of_block);
    void wait(unsigned thread, Halves barrier = Halves::of_block);
    // The same of an arrival barrier, known by its address.
    void arrive(unsigned thread, const void* barrier) { arrive(thread, at_address_[barrier]); }
    void all_arrived(const void* barrier) { at_address_[barrier].complete_all(); }
    void wait(unsigned thread, const void* barrier) { acquire(thread, at_address_[barrier].complete); }
    // The same of an mbarrier, in the phase of that parity. That a phase has ended shows when
    // somebody arrives in the next one, or has waited.
    void arrive(unsigned thread, const void* barrier, unsigned parity) {
        arrive(thread, at_address_[barrier].in_phase(parity));
    }
    void wait(unsigned thread, const void* barrier, unsigned parity) {
        acquire(thread, at_address_[barrier].in_phase(parity ^ 1).complete);
    }
    // The barrier begins anew.
    void reset(const void* barrier) { at_address_.erase(barrier); }
    // Who writes what bulk copies bring for an mbarrier: one more thread, behind those of the
    // block, who arrives with each copy, as others know of them only if they wait there. Of many
    // mbarriers the last ones have one in common, which errs towards "ordered".
    unsigned carrier(const void* barrier);
    static constexpr unsigned kCarriers = kLanes;

    // __threadfence: what the thread knows, and has done, is carried by its atomic accesses from
    // now on.
    void fence(unsigned thread);
    // What an atomic access of the thread carries to those who touch the same address later; null:
    // nothing.
    SharedClock carried(unsigned thread) const { return carried_[thread]; }
    // Is there anything that atomic accesses carry?
    bool any_carried() const { return any_carried_; }
    // The thread has heard what somebody left at an address.
    void acquire(unsigned thread, const SharedClock& clock);

    // By way of another block, towards "ordered": what the thread knows and has done until now; and
    // what somebody hears of that.
    BlockKnowledge release(unsigned thread);
    void acquire(unsigned thread, const BlockKnowledge& known);

  private:
    // What a thread has heard of each lane of its own warp.
    using Row = std::array<Epoch, kLanes>;

    Epoch beyond_warp_of(unsigned first, unsigned thread) const {
        const SharedClock& clock = beyond_[thread];
        return clock == nullptr ? 0 : (*clock)[first];
    }
    void begin_phase();

    unsigned threads_ = 0;
    Epoch latest_ = 0;
    Epoch phase_start_ = 0;
    std::vector<Epoch> epoch_;         // of each thread, and carrier
    std::vector<Row> heard_;           // of each thread, and carrier
    std::vector<Epoch> warp_joined_;   // of each warp: before this epoch, all lanes know of each other
    std::vector<SharedClock> beyond_;  // of each thread: what it has heard by other ways; null: nothing
    bool any_beyond_ = false;          // since the last barrier
    std::vector<SharedClock> carried_;
    bool any_carried_ = false;
    std::vector<LaneMask> live_lanes_;  // of each warp: those the block has
    using ThreadArrivals = Arrivals<Clock>;
    ThreadArrivals& arrivals(Halves barrier) { return arrivals_[static_cast<std::size_t>(barrier)]; }
    void arrive(unsigned thread, ThreadArrivals& barrier);
    std::array<ThreadArrivals, 2> arrivals_;
    std::unordered_map<const void*, ThreadArrivals> at_address_;
    std::unordered_map<const void*, unsigned> carriers_;  // in the order of their first copies
};

// The greater of each two.
SharedClock join(const SharedClock& a, const SharedClock& b);

// --- Between blocks ---------------------------------------------------------------------------------------------------

// What a block knows of the watched blocks of its launch, by their numbers; shorter if it knows
// nothing of the later ones.
using BlocksKnowledge = std::vector<BlockKnowledge>;
using SharedBlocksKnowledge = std::shared_ptr<const BlocksKnowledge>;

// The order between a running block and the others of its launch. One object per running block.
// Coarser than BlockOrder, and always towards "ordered": what one thread of a block has heard, the
// block has heard. A block that is not watched takes part only to hand on what it has heard.
class BlockAmongOthers {
  public:
    static constexpr unsigned kNotWatched = ~0u;

    // `number` among the watched blocks of the launch.
    void begin_block(unsigned number);
    unsigned number() const { return number_; }
    bool knows(unsigned block, unsigned thread, Epoch then) const {
        return known_ != nullptr && block < known_->size() && (*known_)[block].covers(thread, then);
    }

    // A fence of a thread in an epoch covers what was before the last barrier, and what its warp
    // has done.
    void fence(unsigned thread, Epoch now, Epoch phase_start);
    // After a barrier of the block a fence by any of its threads before it covers all.
    void barrier(Epoch last_before);
    // An atomic access of the thread: what lies at the address after it; null: nothing.
    SharedBlocksKnowledge carry(unsigned thread, const SharedBlocksKnowledge& at_address) const;
    // A barrier of several blocks, or another block's: what a thread has released lies there, and
    // all that its block has heard.
    SharedBlocksKnowledge with(const BlockKnowledge& own, const SharedBlocksKnowledge& at_address) const;
    void acquire(const SharedBlocksKnowledge& at_address);

  private:
    static constexpr unsigned kWarps = 32;

    unsigned number_ = kNotWatched;
    SharedBlocksKnowledge known_;
    bool fenced_ = false;
    Epoch fenced_all_ = 0;
    std::array<Epoch, kWarps> fenced_warp_{};
    bool fence_since_barrier_ = false;
};

SharedBlocksKnowledge join(const SharedBlocksKnowledge& a, const SharedBlocksKnowledge& b);

}  // namespace cuda_on_cpu::inspector
