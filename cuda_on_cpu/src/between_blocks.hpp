// Barriers between blocks: those of a cooperative grid and of a cluster. Each block has its own OS
// thread, which sleeps while none of the block's threads can run.
#pragma once

#include <atomic>
#include <optional>

#include "cuda_on_cpu/language.h"
#include "launch_state.hpp"

namespace cuda_on_cpu {

class BlockRunner;

class BetweenBlocks {
  public:
    explicit BetweenBlocks(BlockRunner& block) : block_(block) {}
    // `cluster` is null outside clusters.
    void begin_block(ClusterState* cluster);
    void end_block();
    // The running thread has ended.
    void thread_ended() {
        if (cluster_ != nullptr && cluster_->barrier.drop()) cluster_->events.happened();
    }

    void grid_sync(Site site);
    void cluster_arrive(Site site);
    void cluster_wait(Site site);

    ClusterState& cluster();  // a block outside clusters is a cluster of its own
    bool in_cluster() const { return cluster_ != nullptr; }
    // Wakes the threads whose barrier between blocks has completed.
    bool wake();
    // Called when no thread of the block can run. True: a thread can run now, because another block
    // has arrived or signalled.
    bool wait_for_other_blocks();
    // Called from other OS threads.
    bool waits() const { return waits_; }
    // All blocks of the cluster wait for each other.
    const ClusterState* stuck_cluster() const { return cluster_stuck_ ? cluster_ : nullptr; }

  private:
    void wait_for(BlocksBarrier& barrier, unsigned phase, const char* name, Site site);
    bool wait_for_grid();
    bool wait_for_cluster(unsigned seen_events);
    bool others_may_help() const;
    bool all_arrived_at_cluster_barrier(unsigned phase) const;

    BlockRunner& block_;
    ClusterState* cluster_ = nullptr;
    std::optional<ClusterState> own_cluster_;
    bool cluster_stuck_ = false;
    std::atomic<bool> waits_{false};  // the OS thread is waiting for other blocks
    // Threads that have not arrived at the present grid.sync yet.
    unsigned grid_sync_left_ = 0;
    unsigned grid_sync_phase_ = 0;
};

}  // namespace cuda_on_cpu
