#include "races.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace cuda_on_cpu::inspector {
namespace {

unsigned lowest(LaneMask lanes) {
    return static_cast<unsigned>(std::countr_zero(lanes));
}

void raise(Clock& clock, const Clock& other) {
    for (std::size_t i = 0; i < clock.size(); ++i)
        clock[i] = std::max(clock[i], other[i]);
}

}  // namespace

SharedClock join(const SharedClock& a, const SharedClock& b) {
    if (a == nullptr || a == b) return b;
    if (b == nullptr) return a;
    auto both = std::make_shared<Clock>(*a);
    raise(*both, *b);
    return both;
}

// --- BlockOrder ----------------------------------------------------------------------------------------------------------

void BlockOrder::begin_block(unsigned threads) {
    constexpr Epoch kManyBlocksLater = Epoch{1} << 31;  // well before epochs run out
    const bool begin_anew = latest_ > kManyBlocksLater;
    if (begin_anew) latest_ = 0;
    if (threads != threads_ || begin_anew) {
        threads_ = threads;
        const unsigned warps = (threads + kLanes - 1) / kLanes;
        const unsigned all = warps * kLanes + kCarriers;
        epoch_.assign(all, 0);
        heard_.assign(all, Row{});
        beyond_.assign(all, nullptr);
        carried_.assign(all, nullptr);
        warp_joined_.assign(warps, 0);
        live_lanes_.assign(warps, ~LaneMask{0});
        if (threads % kLanes != 0) live_lanes_.back() = (LaneMask{1} << threads % kLanes) - 1;
    }
    arrivals_.fill({});
    at_address_.clear();
    carriers_.clear();
    begin_phase();
}

// What was known before is smaller than the epochs from now on: nothing needs to be forgotten but
// what is shared.
void BlockOrder::begin_phase() {
    phase_start_ = ++latest_;
    std::fill(epoch_.begin(), epoch_.end(), latest_);
    if (std::exchange(any_beyond_, false)) std::fill(beyond_.begin(), beyond_.end(), nullptr);
    if (std::exchange(any_carried_, false)) std::fill(carried_.begin(), carried_.end(), nullptr);
}

void BlockOrder::barrier() {
    begin_phase();
}

void BlockOrder::join(unsigned warp, LaneMask lanes) {
    const unsigned base = warp * kLanes;
    lanes &= live_lanes_[warp];
    if (lanes == 0) return;
    Row together{};
    Epoch last = 0;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        const unsigned lane = lowest(left);
        const Row& row = heard_[base + lane];
        for (unsigned i = 0; i < kLanes; ++i)
            together[i] = std::max(together[i], row[i]);
        last = std::max(last, epoch_[base + lane]);
    }
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        const unsigned lane = lowest(left);
        together[lane] = std::max(together[lane], epoch_[base + lane]);
    }
    const Epoch next = last + 1;
    latest_ = std::max(latest_, next);
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        const unsigned lane = lowest(left);
        heard_[base + lane] = together;
        epoch_[base + lane] = next;
    }
    if (lanes == live_lanes_[warp]) warp_joined_[warp] = next;
    if (!any_beyond_ && !any_carried_) return;

    SharedClock beyond;
    SharedClock carried;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        beyond = inspector::join(beyond, beyond_[base + lowest(left)]);
        carried = inspector::join(carried, carried_[base + lowest(left)]);
    }
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        beyond_[base + lowest(left)] = beyond;
        carried_[base + lowest(left)] = carried;
    }
}

void BlockOrder::arrive(unsigned thread, Halves barrier) {
    arrive(thread, arrivals(barrier));
}

void BlockOrder::arrive(unsigned thread, ThreadArrivals& barrier) {
    std::shared_ptr<Clock>& arriving = barrier.now;
    if (arriving == nullptr) arriving = std::make_shared<Clock>(epoch_.size(), 0);
    const unsigned base = thread / kLanes * kLanes;
    Clock& clock = *arriving;
    for (unsigned i = 0; i < kLanes; ++i)
        clock[base + i] = std::max(clock[base + i], heard_[thread][i]);
    if (beyond_[thread] != nullptr) raise(clock, *beyond_[thread]);
    clock[thread] = std::max(clock[thread], epoch_[thread]);
    latest_ = std::max(latest_, ++epoch_[thread]);
}

unsigned BlockOrder::carrier(const void* barrier) {
    const auto next = std::min(static_cast<unsigned>(carriers_.size()), kCarriers - 1);
    const unsigned number = carriers_.try_emplace(barrier, next).first->second;
    return static_cast<unsigned>(epoch_.size()) - kCarriers + number;
}

void BlockOrder::all_arrived(Halves barrier) {
    arrivals(barrier).complete_all();
}

void BlockOrder::wait(unsigned thread, Halves barrier) {
    acquire(thread, arrivals(barrier).complete);
}

void BlockOrder::fence(unsigned thread) {
    auto clock = std::make_shared<Clock>(epoch_.size(), 0);
    const unsigned base = thread / kLanes * kLanes;
    // Everything before the last barrier goes without saying inside the block.
    for (unsigned i = 0; i < kLanes; ++i)
        (*clock)[base + i] = heard_[thread][i];
    if (beyond_[thread] != nullptr) raise(*clock, *beyond_[thread]);
    (*clock)[thread] = std::max((*clock)[thread], epoch_[thread]);
    carried_[thread] = inspector::join(carried_[thread], clock);
    any_carried_ = true;
    latest_ = std::max(latest_, ++epoch_[thread]);
}

void BlockOrder::acquire(unsigned thread, const SharedClock& clock) {
    if (clock == nullptr) return;
    beyond_[thread] = inspector::join(beyond_[thread], clock);
    any_beyond_ = true;
}

BlockKnowledge BlockOrder::release(unsigned thread) {
    BlockKnowledge known{phase_start_ - 1, epoch_[thread], thread / kLanes};
    if (beyond_[thread] != nullptr)
        known.all = std::max(known.all, *std::ranges::max_element(*beyond_[thread]));
    latest_ = std::max(latest_, ++epoch_[thread]);
    return known;
}

void BlockOrder::acquire(unsigned thread, const BlockKnowledge& known) {
    auto clock = std::make_shared<Clock>(epoch_.size(), known.all);
    for (unsigned i = 0; i < kLanes; ++i) {
        Epoch& of_lane = (*clock)[known.warp * kLanes + i];
        of_lane = std::max(of_lane, known.of_warp);
    }
    acquire(thread, clock);
}

// --- Between blocks --------------------------------------------------------------------------------------------------------

void BlockKnowledge::join(const BlockKnowledge& other) {
    // Of two warps only one can be kept: the other's epoch then counts for all, which errs towards
    // "ordered".
    if (of_warp == 0) {
        of_warp = other.of_warp;
        warp = other.warp;
    } else if (other.of_warp != 0 && other.warp != warp) {
        all = std::max(all, other.of_warp);
    } else {
        of_warp = std::max(of_warp, other.of_warp);
    }
    all = std::max(all, other.all);
}

SharedBlocksKnowledge join(const SharedBlocksKnowledge& a, const SharedBlocksKnowledge& b) {
    if (a == nullptr || a == b) return b;
    if (b == nullptr) return a;
    auto both = std::make_shared<BlocksKnowledge>(a->size() >= b->size() ? *a : *b);
    const BlocksKnowledge& shorter = a->size() >= b->size() ? *b : *a;
    for (std::size_t i = 0; i < shorter.size(); ++i)
        (*both)[i].join(shorter[i]);
    return both;
}

void BlockAmongOthers::begin_block(unsigned number) {
    number_ = number;
    known_.reset();
    fenced_ = fence_since_barrier_ = false;
    fenced_all_ = 0;
    fenced_warp_.fill(0);
}

void BlockAmongOthers::fence(unsigned thread, Epoch now, Epoch phase_start) {
    if (phase_start > 0) fenced_all_ = std::max(fenced_all_, phase_start - 1);
    fenced_warp_[thread / kLanes] = now;
    fenced_ = fence_since_barrier_ = true;
}

void BlockAmongOthers::barrier(Epoch last_before) {
    if (std::exchange(fence_since_barrier_, false)) fenced_all_ = std::max(fenced_all_, last_before);
}

SharedBlocksKnowledge BlockAmongOthers::carry(unsigned thread,
                                              const SharedBlocksKnowledge& at_address) const {
    const unsigned warp = thread / kLanes;
    return fenced_ ? with({fenced_all_, fenced_warp_[warp], warp}, at_address) : at_address;
}

SharedBlocksKnowledge BlockAmongOthers::with(const BlockKnowledge& own,
                                             const SharedBlocksKnowledge& at_address) const {
    SharedBlocksKnowledge all = join(at_address, known_);
    if (number_ == kNotWatched) return all;
    auto with_own =
        all == nullptr ? std::make_shared<BlocksKnowledge>() : std::make_shared<BlocksKnowledge>(*all);
    if (with_own->size() <= number_) with_own->resize(number_ + 1);
    (*with_own)[number_].join(own);
    return with_own;
}

void BlockAmongOthers::acquire(const SharedBlocksKnowledge& at_address) {
    known_ = join(known_, at_address);
}

}  // namespace cuda_on_cpu::inspector
