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
    if (clock.size() < other.size()) clock.resize(other.size(), 0);
    for (std::size_t i = 0; i < other.size(); ++i)
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
        to_acquire_.assign(all, nullptr);
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
    if (std::exchange(any_to_acquire_, false)) std::fill(to_acquire_.begin(), to_acquire_.end(), nullptr);
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
    if (!any_clock_ && !any_released_ && !any_to_acquire_) return;

    SharedClock clock;
    SharedClock released;
    SharedClock to_acquire;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        clock = inspector::join(clock, clock_[base + lowest(left)]);
        released = inspector::join(released, released_[base + lowest(left)]);
        to_acquire = inspector::join(to_acquire, to_acquire_[base + lowest(left)]);
    }
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        clock_[base + lowest(left)] = clock;
        released_[base + lowest(left)] = released;
        to_acquire_[base + lowest(left)] = to_acquire;
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
    advance(thread);
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

// Operations before the last barrier are ordered by phase_start_.
std::shared_ptr<Clock> BlockOrder::clock_before(unsigned thread) const {
    auto clock = std::make_shared<Clock>(epoch_.size(), 0);
    const unsigned base = thread / kLanes * kLanes;
    for (unsigned i = 0; i < kLanes; ++i)
        (*clock)[base + i] = warp_clock_[thread][i];
    if (clock_[thread] != nullptr) raise(*clock, *clock_[thread]);
    (*clock)[thread] = std::max((*clock)[thread], epoch_[thread]);
    return clock;
}

void BlockOrder::fence_to_release(unsigned thread) {
    released_[thread] = inspector::join(released_[thread], clock_before(thread));
    any_released_ = true;
    advance(thread);
}

SharedClock BlockOrder::release_once(unsigned thread) {
    SharedClock clock = clock_before(thread);
    advance(thread);
    return clock;
}

BlockClock BlockOrder::before(unsigned thread) const {
    BlockClock before{.all = phase_start_ - 1, .of_thread = epoch_[thread], .thread = thread};
    const unsigned warp = thread / kLanes;
    const Epoch of_warp = known_of_warp(thread);
    const bool whole_warp = of_warp < warp_joined_[warp];
    if (whole_warp) {
        before.of_warp = warp_joined_[warp] - 1;
        before.warp = warp;
    }
    if (clock_[thread] != nullptr || (of_warp >= phase_start_ && !whole_warp))
        before.by_thread = clock_before(thread);
    return before;
}

void BlockOrder::acquire(unsigned thread, const SharedClock& clock) {
    if (clock == nullptr) return;
    clock_[thread] = inspector::join(clock_[thread], clock);
    any_clock_ = true;
}

void BlockOrder::acquire_at_fence(unsigned thread, const SharedClock& clock) {
    if (clock == nullptr) return;
    to_acquire_[thread] = inspector::join(to_acquire_[thread], clock);
    any_to_acquire_ = true;
}

void BlockOrder::fence(unsigned thread) {
    fence_to_acquire(thread);
    fence_to_release(thread);
}

void BlockOrder::fence_to_acquire(unsigned thread) {
    if (any_to_acquire_) acquire(thread, std::exchange(to_acquire_[thread], nullptr));
}

Epoch BlockOrder::known_of_warp(unsigned thread) const {
    const WarpClock& row = warp_clock_[thread];
    Epoch last = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
        if (i != thread % kLanes) last = std::max(last, row[i]);
    }
    return last;
}

BlockClock BlockOrder::release(unsigned thread) {
    BlockClock released{phase_start_ - 1, epoch_[thread], thread / kLanes};
    if (clock_[thread] != nullptr)
        released.all = std::max(released.all, *std::ranges::max_element(*clock_[thread]));
    advance(thread);
    return released;
}

void BlockOrder::acquire(unsigned thread, const BlockClock& released) {
    auto clock = std::make_shared<Clock>(epoch_.size(), released.all);
    for (unsigned i = 0; i < kLanes; ++i) {
        Epoch& of_lane = (*clock)[released.warp * kLanes + i];
        of_lane = std::max(of_lane, released.of_warp);
    }
    if (released.of_thread > 0)
        (*clock)[released.thread] = std::max((*clock)[released.thread], released.of_thread);
    if (released.by_thread != nullptr) raise(*clock, *released.by_thread);
    acquire(thread, clock);
}

// --- Between blocks ------------------------------------------------------------------------------

void BlockClock::join(const BlockClock& other) {
    const BlockClock* const one = &other;
    join(std::span(&one, 1));
}

// There is room for one warp, and for one thread. Others become entries of by_thread.
void BlockClock::join(std::span<const BlockClock* const> others) {
    std::shared_ptr<Clock> entries;
    const auto raise_entry = [&](unsigned of, Epoch epoch) {
        if (covers(of, epoch)) return;
        if (entries == nullptr) entries = std::make_shared<Clock>();
        if (entries->size() <= of) entries->resize(of + 1, 0);
        (*entries)[of] = std::max((*entries)[of], epoch);
    };
    for (const BlockClock* other : others) {
        all = std::max(all, other->all);
        by_thread = inspector::join(by_thread, other->by_thread);
    }
    for (const BlockClock* other : others) {
        if (other->of_warp > all) {
            if (of_warp <= all) {
                of_warp = other->of_warp;
                warp = other->warp;
            } else if (other->warp == warp) {
                of_warp = std::max(of_warp, other->of_warp);
            } else {
                for (unsigned lane = 0; lane < kLanes; ++lane)
                    raise_entry(other->warp * kLanes + lane, other->of_warp);
            }
        }
        if (other->of_thread > all) {
            if (of_thread <= all) {
                of_thread = other->of_thread;
                thread = other->thread;
            } else if (other->thread == thread) {
                of_thread = std::max(of_thread, other->of_thread);
            } else {
                raise_entry(other->thread, other->of_thread);
            }
        }
    }
    if (entries != nullptr) by_thread = inspector::join(by_thread, entries);
    if (by_thread != nullptr && std::ranges::all_of(*by_thread, [&](Epoch epoch) { return epoch <= all; }))
        by_thread = nullptr;
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
    if (std::exchange(any_of_thread_, false)) std::ranges::fill(of_thread_, nullptr);
    for (const unsigned thread : fenced_threads_)
        fenced_thread_[thread] = {};
    fenced_threads_.clear();
    fenced_block_ = {};
    fenced_ = false;
}

void GridOrder::fence(unsigned thread, const BlockClock& before) {
    fenced_ = true;
    if (thread >= kMostThreads) return;
    if (fenced_thread_[thread].is_zero()) fenced_threads_.push_back(thread);
    fenced_thread_[thread] = before;
}

void GridOrder::barrier() {
    if (!fenced_threads_.empty()) {
        std::vector<const BlockClock*> fenced;
        for (const unsigned thread : fenced_threads_)
            fenced.push_back(&fenced_thread_[thread]);
        fenced_block_.join(fenced);
        for (const unsigned thread : std::exchange(fenced_threads_, {}))
            fenced_thread_[thread] = {};
    }
    if (!std::exchange(any_of_thread_, false)) return;
    for (SharedBlockClocks& acquired : of_thread_)
        clocks_ = inspector::join(clocks_, std::exchange(acquired, nullptr));
}

void GridOrder::join(unsigned warp, LaneMask lanes) {
    if (fenced_threads_.empty() && !any_of_thread_) return;
    SharedBlockClocks acquired;
    std::array<const BlockClock*, kLanes> of_lanes{};
    std::size_t count = 0;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        const unsigned thread = warp * kLanes + lowest(left);
        acquired = inspector::join(acquired, of_thread_[thread]);
        if (!fenced_thread_[thread].is_zero()) of_lanes[count++] = &fenced_thread_[thread];
    }
    BlockClock fenced;
    fenced.join(std::span(of_lanes.data(), count));
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        const unsigned thread = warp * kLanes + lowest(left);
        of_thread_[thread] = acquired;
        if (count > 0) fence(thread, fenced);
    }
}

SharedBlockClocks GridOrder::release(unsigned thread, const SharedBlockClocks& at_address) const {
    if (!fenced_ || thread >= kMostThreads) return at_address;
    BlockClock own = fenced_block_;
    own.join(fenced_thread_[thread]);
    if (number_ != kNotWatched && own.is_zero()) return at_address;
    return release(thread, own, at_address);
}

SharedBlockClocks GridOrder::release(unsigned thread, const BlockClock& own,
                                     const SharedBlockClocks& at_address) const {
    const bool has_own = any_of_thread_ && thread < kMostThreads;
    return release(own, has_own ? inspector::join(at_address, of_thread_[thread]) : at_address);
}

SharedBlockClocks GridOrder::release(const BlockClock& own, const SharedBlockClocks& at_address) const {
    SharedBlockClocks all = inspector::join(at_address, clocks_);
    if (number_ == kNotWatched) return all;
    auto with_own = all == nullptr ? std::make_shared<BlockClocks>() : std::make_shared<BlockClocks>(*all);
    if (with_own->size() <= number_) with_own->resize(number_ + 1);
    (*with_own)[number_].join(own);
    return with_own;
}

void GridOrder::acquire(const SharedBlockClocks& at_address) {
    clocks_ = inspector::join(clocks_, at_address);
}

void GridOrder::acquire(unsigned thread, const SharedBlockClocks& at_address) {
    if (at_address == nullptr) return;
    if (thread >= kMostThreads) return acquire(at_address);
    // What only the block's own threads have released is known exactly (BlockOrder).
    bool of_others = false;
    for (std::size_t i = 0; i < at_address->size() && !of_others; ++i)
        of_others = i != number_ && !(*at_address)[i].is_zero();
    if (!of_others) return;
    of_thread_[thread] = inspector::join(of_thread_[thread], at_address);
    any_of_thread_ = true;
}

}  // namespace cuda_on_cpu::inspector
