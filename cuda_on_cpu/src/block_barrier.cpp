#include "block_barrier.hpp"

#include <string>

#include "block.hpp"
#include "environment.hpp"
#include "order_notes.hpp"
#include "report_text.hpp"

namespace cuda_on_cpu {

int BlockBarrier::sync(BarrierKind kind, int predicate, Site site) {
    Scheduler& scheduler = block_.scheduler();
    count_arrival(kind, predicate, site);
    block_.notify(event::BarrierArrived{scheduler.thread_number(), site});
    Thread& self = scheduler.note_wait(Wait::block_barrier, name_of(kind), site);
    if (++arrived_ == scheduler.live_threads()) {
        release();
        scheduler.restart();
    }
    scheduler.hand_over(self);
    return result_;
}

// All threads must arrive at the same place, except at a split barrier or with
// CUDA_ON_CPU_BARRIERS=any.
[[gnu::always_inline]] inline void BlockBarrier::count_arrival(BarrierKind kind, int predicate, Site site) {
    if (arrived_ == 0) {
        kind_ = kind;
        site_ = site;
        true_count_ = 0;
    } else if (kind_ != kind || (kind != BarrierKind::split && !same_place(site_, site) &&
                                 environment().barriers != BarrierRule::any)) {
        fail_at_different_barrier(kind, site);
    }
    true_count_ += predicate != 0 ? 1 : 0;
}

void BlockBarrier::fail_at_different_barrier(BarrierKind kind, Site site) {
    block_.fail(cudaErrorLaunchFailure,
                std::string("threads of one block wait at different barriers: this one in ") + name_of(kind) +
                    ", " + std::to_string(arrived_) + " other(s) in " + name_of(kind_) + " at " +
                    place(site_) + ". A barrier in a branch must be reached by the whole block" +
                    (kind == kind_ ? " (CUDA_ON_CPU_BARRIERS=any lets them meet, as GPUs do)" : ""),
                site);
}

void BlockBarrier::arrive(Site site) {
    Scheduler& scheduler = block_.scheduler();
    Warp& warp = scheduler.warp();
    if ((warp.owes_block_wait & scheduler.lane_bit()) != 0)
        block_.fail(cudaErrorLaunchFailure, "barrier_arrive again without barrier_wait in between", site);
    count_arrival(BarrierKind::split, 0, site);
    block_.notify(event::SplitBarrierArrived{scheduler.thread_number(), site});
    warp.owes_block_wait |= scheduler.lane_bit();
    scheduler.thread().block_phase = phase_;
    if (++arrived_ == scheduler.live_threads()) release();
}

void BlockBarrier::wait(Site site) {
    Scheduler& scheduler = block_.scheduler();
    Warp& warp = scheduler.warp();
    if ((warp.owes_block_wait & scheduler.lane_bit()) == 0)
        block_.fail(cudaErrorLaunchFailure, "barrier_wait without barrier_arrive", site);
    warp.owes_block_wait &= ~scheduler.lane_bit();
    if (scheduler.thread().block_phase == phase_)
        scheduler.wait(Wait::block_barrier, "block.barrier_wait", site);
    block_.notify(event::SplitBarrierLeft{scheduler.thread_number()});
}

// A thread that ends before the block's first barrier counts as arrived at all of them, as on a
// GPU.
void BlockBarrier::fail_without_ended_threads() {
    block_.fail(cudaErrorLaunchFailure,
                std::to_string(ended_after_one_) + " of the block's " +
                    std::to_string(block_.scheduler().threads()) + " threads have come to barriers before " +
                    name_of(kind_) +
                    ", and have ended without this one. A barrier in a branch must be reached by the whole "
                    "block",
                site_);
}

void BlockBarrier::thread_ended() {
    if (released_ > 0) ++ended_after_one_;
    if (arrived_ > 0 && arrived_ == block_.scheduler().live_threads()) release();
}

void BlockBarrier::release() {
    if (kind_ != BarrierKind::split) {
        if (ended_after_one_ > 0 && environment().barriers == BarrierRule::whole)
            fail_without_ended_threads();
        ++released_;
    }
    ++phase_;
    block_.note_progress();
    block_.notify(event::BarrierReleased{});
    // Not at a split barrier: which threads have gone on behind it depends on the order.
    if (at_block_barrier != nullptr && kind_ != BarrierKind::split) at_block_barrier();
    switch (kind_) {
        case BarrierKind::sync:
        case BarrierKind::split:
            break;
        case BarrierKind::count:
            result_ = true_count_;
            break;
        case BarrierKind::all:
            result_ = true_count_ == static_cast<int>(arrived_);
            break;
        case BarrierKind::any:
            result_ = true_count_ > 0;
            break;
    }
    arrived_ = 0;
    Scheduler& scheduler = block_.scheduler();
    for (unsigned w = 0; w < scheduler.warps(); ++w)
        scheduler.wake_all(Wait::block_barrier, w);
}

}  // namespace cuda_on_cpu
