#include "between_blocks.hpp"

#include "block.hpp"

namespace cuda_on_cpu {

void BetweenBlocks::begin_block(ClusterState* cluster) {
    cluster_ = cluster;
    cluster_stuck_ = false;
    grid_sync_left_ = 0;
}

void BetweenBlocks::end_block() {
    if (cluster_ != nullptr) cluster_->events.block_ended();
}

ClusterState& BetweenBlocks::cluster() {
    if (cluster_ == nullptr) {
        cluster_ = &own_cluster_.emplace(dim3(1, 1, 1), block_.scheduler().live_threads());
        cluster_->block[0] = {block_.shared().begin(), reinterpret_cast<char*>(&threadIdx), &block_};
    }
    return *cluster_;
}

// --- Called by threads ---------------------------------------------------------------------------

// As on the hardware, the block synchronises first and then arrives as one participant.
void BetweenBlocks::grid_sync(Site site) {
    block_.barrier().sync(BarrierKind::sync, 0, site);
    BlocksBarrier& barrier = block_.launch().grid_barrier;
    // The first thread to get here sets the counter. The number of live threads is not read again,
    // because threads that continue at once may have ended before the last one gets here.
    if (grid_sync_left_ == 0) {
        grid_sync_left_ = block_.scheduler().live_threads();
        grid_sync_phase_ = barrier.arrive();
    }
    --grid_sync_left_;
    block_.notify(
        event::BlocksBarrierArrived{block_.scheduler().thread_number(), &barrier, grid_sync_phase_, site});
    wait_for(barrier, grid_sync_phase_, "grid.sync", site);
}

void BetweenBlocks::cluster_arrive(Site site) {
    Scheduler& scheduler = block_.scheduler();
    Warp& warp = scheduler.warp();
    if ((warp.owes_cluster_wait & scheduler.lane_bit()) != 0) {
        block_.fail(cudaErrorLaunchFailure,
                    "the cluster's barrier_arrive again without barrier_wait in between", site);
    }
    warp.owes_cluster_wait |= scheduler.lane_bit();
    BlocksBarrier& barrier = cluster().barrier;
    const unsigned phase = barrier.phase();
    scheduler.thread().cluster_phase = phase;
    // Must come before the arrival, after which other blocks may continue.
    block_.notify(event::BlocksBarrierArrived{scheduler.thread_number(), &barrier, phase, site});
    barrier.arrive();
    if (barrier.passed(phase)) cluster_->events.happened();
}

void BetweenBlocks::cluster_wait(Site site) {
    Scheduler& scheduler = block_.scheduler();
    Warp& warp = scheduler.warp();
    if ((warp.owes_cluster_wait & scheduler.lane_bit()) == 0)
        block_.fail(cudaErrorLaunchFailure, "the cluster's barrier_wait without barrier_arrive", site);
    wait_for(cluster().barrier, scheduler.thread().cluster_phase, "cluster.sync", site);
    warp.owes_cluster_wait &= ~scheduler.lane_bit();
}

void BetweenBlocks::wait_for(BlocksBarrier& barrier, unsigned phase, const char* name, Site site) {
    Scheduler& scheduler = block_.scheduler();
    if (!barrier.passed(phase)) {
        Thread& self = scheduler.thread();
        self.blocks_barrier = &barrier;
        self.phase = phase;
        scheduler.wait(Wait::blocks_barrier, name, site);
    }
    block_.notify(event::BlocksBarrierLeft{scheduler.thread_number(), &barrier, phase});
}

// --- When no thread of the block can run ---------------------------------------------------------

bool BetweenBlocks::wake() {
    return block_.scheduler().wake_if(Wait::blocks_barrier, [](const Thread& thread) {
        return thread.blocks_barrier->passed(thread.phase);
    });
}

// Carries out bulk copies, and waits for other blocks, until one of the waiting threads can run.
bool BetweenBlocks::wait_for_other_blocks() {
    for (;;) {
        const unsigned seen = cluster_ != nullptr ? cluster_->events.count() : 0;
        if (block_.launch().failed || !block_.async().carry_out_awaited_loads()) return false;
        const bool past_mbarriers = block_.mbarriers().wake_past(nullptr);
        if (wake() || past_mbarriers) {
            block_.note_progress();
            return true;
        }
        waits_ = true;
        const bool goes_on = cluster_ == nullptr ? wait_for_grid() : wait_for_cluster(seen);
        waits_ = false;
        if (cluster_ == nullptr || !goes_on) return goes_on;
    }
}

bool BetweenBlocks::wait_for_cluster(unsigned seen_events) {
    if (!others_may_help()) return false;
    if (cluster_->events.wait(seen_events, block_.launch().failed)) return true;
    cluster_stuck_ = true;
    return false;
}

bool BetweenBlocks::wait_for_grid() {
    const Scheduler& scheduler = block_.scheduler();
    bool waits = false;
    for (unsigned w = 0; w < scheduler.warps(); ++w) {
        for (const unsigned lane : lanes_of(scheduler.warp(w).at(Wait::blocks_barrier))) {
            const Thread& thread = scheduler.thread(w * kWarpLanes + lane);
            if (!thread.blocks_barrier->wait(thread.phase, block_.launch().failed)) return false;
            waits = true;
        }
    }
    return waits && wake();
}

// Another block of the cluster can wake threads that wait at an mbarrier and, once all threads of
// this block have arrived, at the cluster's barrier.
bool BetweenBlocks::others_may_help() const {
    const Scheduler& scheduler = block_.scheduler();
    if (scheduler.any_waits(Wait::mbarrier)) return true;
    for (unsigned w = 0; w < scheduler.warps(); ++w) {
        if (const LaneMask waiting = scheduler.warp(w).at(Wait::blocks_barrier); waiting != 0)
            return all_arrived_at_cluster_barrier(scheduler.thread(w * kWarpLanes + lowest(waiting)).phase);
    }
    return false;
}

bool BetweenBlocks::all_arrived_at_cluster_barrier(unsigned phase) const {
    const Scheduler& scheduler = block_.scheduler();
    for (unsigned w = 0; w < scheduler.warps(); ++w) {
        const Warp& warp = scheduler.warp(w);
        if ((warp.live & ~warp.owes_cluster_wait) != 0) return false;
        for (const unsigned lane : lanes_of(warp.live)) {
            if (scheduler.thread(w * kWarpLanes + lane).cluster_phase != phase) return false;
        }
    }
    return true;
}

}  // namespace cuda_on_cpu
