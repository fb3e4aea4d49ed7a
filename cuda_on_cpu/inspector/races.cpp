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

// --- BlockOrder ----------------------------------------------------------------------------------

void BlockOrder::begin_block(unsigned threads) {
    constexpr Epoch kManyBlocksLater = Epoch{1} << 31;  // well before epochs run out
    const bool begin_anew = latest_ > kManyBlocksLater;
    if (begin_anew) latest_ = 0;
    if (threads != threads_ || begin_anew) {
        threads_ = threads;
        const unsigned warps = (threads + kLanes - 1) / kLanes;
        const unsigned all = warps * kLanes + kCopyEngines;
        epoch_.assign(all, 0);
        warp_clock_.assign(all, WarpClock{});
        clock_.assign(all, nullptr);
        released_.assign(all, nullptr);
        warp_joined_.assign(warps, 0);
        live_lanes_.assign(warps, ~LaneMask{0});
        if (threads % kLanes != 0) live_lanes_.back() = (LaneMask{1} << threads % kLanes) - 1;
    }
    arrivals_.fill({});
    at_address_.clear();
    copy_engines_.clear();
    begin_phase();
}

// All existing entries are smaller than the epochs from now on, so only the shared clocks have to
// be dropped.
void BlockOrder::begin_phase() {
    phase_start_ = ++latest_;
    std::fill(epoch_.begin(), epoch_.end(), latest_);
    if (std::exchange(any_clock_, false)) std::fill(clock_.begin(), clock_.end(), nullptr);
    if (std::exchange(any_released_, false)) std::fill(released_.begin(), released_.end(), nullptr);
}

void BlockOrder::barrier() {
    begin_phase();
}

void BlockOrder::join(unsigned warp, LaneMask lanes) {
    const unsigned base = warp * kLanes;
    lanes &= live_lanes_[warp];
    if (lanes == 0) return;
    WarpClock together{};
    Epoch last = 0;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        const unsigned lane = lowest(left);
        const WarpClock& row = warp_clock_[base + lane];
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
        warp_clock_[base + lane] = together;
        epoch_[base + lane] = next;
    }
    if (lanes == live_lanes_[warp]) warp_joined_[warp] = next;
    if (!any_clock_ && !any_released_) return;

    SharedClock clock;
    SharedClock released;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        clock = inspector::join(clock, clock_[base + lowest(left)]);
        released = inspector::join(released, released_[base + lowest(left)]);
    }
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        clock_[base + lowest(left)] = clock;
        released_[base + lowest(left)] = released;
    }
}

void BlockOrder::arrive(unsigned thread, SplitBarrier barrier) {
    arrive(thread, arrivals(barrier));
}

void BlockOrder::arrive(unsigned thread, ThreadPhases& barrier) {
    if (barrier.now == nullptr) barrier.now = std::make_shared<Clock>(epoch_.size(), 0);
    const unsigned base = thread / kLanes * kLanes;
    Clock& clock = *barrier.now;
    for (unsigned i = 0; i < kLanes; ++i)
        clock[base + i] = std::max(clock[base + i], warp_clock_[thread][i]);
    if (clock_[thread] != nullptr) raise(clock, *clock_[thread]);
    clock[thread] = std::max(clock[thread], epoch_[thread]);
    latest_ = std::max(latest_, ++epoch_[thread]);
}

unsigned BlockOrder::copy_engine(const void* barrier) {
    const auto next = std::min(static_cast<unsigned>(copy_engines_.size()), kCopyEngines - 1);
    const unsigned number = copy_engines_.try_emplace(barrier, next).first->second;
    return static_cast<unsigned>(epoch_.size()) - kCopyEngines + number;
}

void BlockOrder::all_arrived(SplitBarrier barrier) {
    arrivals(barrier).complete_all();
}

void BlockOrder::wait(unsigned thread, SplitBarrier barrier) {
    acquire(thread, arrivals(barrier).complete);
}

void BlockOrder::fence(unsigned thread) {
    auto clock = std::make_shared<Clock>(epoch_.size(), 0);
    const unsigned base = thread / kLanes * kLanes;
    // Operations before the last barrier are ordered by phase_start_.
    for (unsigned i = 0; i < kLanes; ++i)
        (*clock)[base + i] = warp_clock_[thread][i];
    if (clock_[thread] != nullptr) raise(*clock, *clock_[thread]);
    (*clock)[thread] = std::max((*clock)[thread], epoch_[thread]);
    released_[thread] = inspector::join(released_[thread], clock);
    any_released_ = true;
    latest_ = std::max(latest_, ++epoch_[thread]);
}

void BlockOrder::acquire(unsigned thread, const SharedClock& clock) {
    if (clock == nullptr) return;
    clock_[thread] = inspector::join(clock_[thread], clock);
    any_clock_ = true;
}

BlockClock BlockOrder::release(unsigned thread) {
    BlockClock released{phase_start_ - 1, epoch_[thread], thread / kLanes};
    if (clock_[thread] != nullptr)
        released.all = std::max(released.all, *std::ranges::max_element(*clock_[thread]));
    latest_ = std::max(latest_, ++epoch_[thread]);
    return released;
}

void BlockOrder::acquire(unsigned thread, const BlockClock& released) {
    auto clock = std::make_shared<Clock>(epoch_.size(), released.all);
    for (unsigned i = 0; i < kLanes; ++i) {
        Epoch& of_lane = (*clock)[released.warp * kLanes + i];
        of_lane = std::max(of_lane, released.of_warp);
    }
    acquire(thread, clock);
}

// --- Between blocks ------------------------------------------------------------------------------

void BlockClock::join(const BlockClock& other) {
    // There is room for one warp only, so the other's epoch then counts for the whole block, which
    // errs towards "ordered".
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

SharedBlockClocks join(const SharedBlockClocks& a, const SharedBlockClocks& b) {
    if (a == nullptr || a == b) return b;
    if (b == nullptr) return a;
    auto both = std::make_shared<BlockClocks>(a->size() >= b->size() ? *a : *b);
    const BlockClocks& shorter = a->size() >= b->size() ? *b : *a;
    for (std::size_t i = 0; i < shorter.size(); ++i)
        (*both)[i].join(shorter[i]);
    return both;
}

void GridOrder::begin_block(unsigned number) {
    number_ = number;
    clocks_.reset();
    fenced_ = fence_since_barrier_ = false;
    fenced_all_ = 0;
    fenced_warp_.fill(0);
}

void GridOrder::fence(unsigned thread, Epoch now, Epoch phase_start) {
    if (phase_start > 0) fenced_all_ = std::max(fenced_all_, phase_start - 1);
    fenced_warp_[thread / kLanes] = now;
    fenced_ = fence_since_barrier_ = true;
}

void GridOrder::barrier(Epoch last_before) {
    if (std::exchange(fence_since_barrier_, false)) fenced_all_ = std::max(fenced_all_, last_before);
}

SharedBlockClocks GridOrder::release(unsigned thread, const SharedBlockClocks& at_address) const {
    const unsigned warp = thread / kLanes;
    return fenced_ ? release(BlockClock{fenced_all_, fenced_warp_[warp], warp}, at_address) : at_address;
}

SharedBlockClocks GridOrder::release(const BlockClock& own, const SharedBlockClocks& at_address) const {
    SharedBlockClocks all = join(at_address, clocks_);
    if (number_ == kNotWatched) return all;
    auto with_own = all == nullptr ? std::make_shared<BlockClocks>() : std::make_shared<BlockClocks>(*all);
    if (with_own->size() <= number_) with_own->resize(number_ + 1);
    (*with_own)[number_].join(own);
    return with_own;
}

void GridOrder::acquire(const SharedBlockClocks& at_address) {
    clocks_ = join(clocks_, at_address);
}

}  // namespace cuda_on_cpu::inspector
