// Runs the threads of one block, one after the other, on one OS thread. A BlockRunner owns these
// parts, which access each other through it:
//
//   Scheduler         which thread runs next, and on which stack
//   Collectives       instructions of a warp: shuffles, votes, matrix instructions
//   BlockBarrier      __syncthreads, and the split barrier
//   NamedBarriers     bar.sync, bar.arrive
//   ArrivalBarriers   cuda::pipeline
//   Mbarriers         mbarrier.*, cuda::barrier
//   BetweenBlocks     barriers of a grid and of a cluster
//   AsyncEngine       cp.async, TMA, wgmma
//   SharedArena       shared memory, and 32-bit addresses of it
//   PollingWatch      whether a block that only polls memory may continue
//
// This class holds what the parts share: the launch, the observer, and how a block fails.
// diagnosis.hpp describes why no thread can continue.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "arrival_barriers.hpp"
#include "async_engine.hpp"
#include "between_blocks.hpp"
#include "block_barrier.hpp"
#include "collectives.hpp"
#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/thread.h"
#include "environment.hpp"
#include "launch_state.hpp"
#include "mbarriers.hpp"
#include "named_barriers.hpp"
#include "observer.hpp"
#include "polling_watch.hpp"
#include "scheduler.hpp"
#include "shared_arena.hpp"

namespace cuda_on_cpu {

class BlockRunner {
  public:
    BlockRunner();
    ~BlockRunner();
    BlockRunner(const BlockRunner&) = delete;
    BlockRunner& operator=(const BlockRunner&) = delete;

    // Runs one block to its end and stores a failure in `launch`. `cluster` is null outside
    // clusters.
    void run(LaunchState& launch, uint3 block, ClusterState* cluster);
    // From now on other blocks of the cluster may issue loads to the next block of this runner.
    void expect_block() { async_.loads().clear(); }
    void reverse_order() { scheduler_.reverse_order(); }

    Scheduler& scheduler() { return scheduler_; }
    const Scheduler& scheduler() const { return scheduler_; }
    Collectives& collectives() { return collectives_; }
    BlockBarrier& barrier() { return barrier_; }
    NamedBarriers& named_barriers() { return named_barriers_; }
    const NamedBarriers& named_barriers() const { return named_barriers_; }
    ArrivalBarriers& arrival_barriers() { return arrival_barriers_; }
    Mbarriers& mbarriers() { return mbarriers_; }
    BetweenBlocks& between_blocks() { return between_blocks_; }
    const BetweenBlocks& between_blocks() const { return between_blocks_; }
    AsyncEngine& async() { return async_; }
    const SharedArena& shared() const { return shared_; }
    ClusterState& cluster() { return between_blocks_.cluster(); }

    // Shared by all parts.
    bool runs_block() const { return launch_ != nullptr; }
    // Do its threads run in loops, so that there is no running thread?
    bool in_rows() const { return in_rows_; }
    LaunchState& launch() const { return *launch_; }
    uint3 index() const { return index_; }
    bool observed() const { return observer_ != nullptr; }
    // Does nothing if the block is not observed.
    template <class OneEvent>
    void notify(const OneEvent& event) const {
        if (observer_ != nullptr) observer_->notify(event);
    }
    // Ends the block, from one of its threads.
    [[noreturn]] void fail(cudaError_t error, const std::string& message, Site site);
    // The same; `where` names the thread and the place.
    [[noreturn]] void fail_in(const std::string& where, cudaError_t error, const std::string& message,
                              Site site);
    // Fails unless the device's compute capability is at least `first` and at most `last`.
    void need_capability(Capability first, Capability last, const char* instruction, Site site);
    void note_progress() { polling_.note_progress(); }
    // With late stores, a thread that arrives without waiting lets the other threads run first, so
    // that they may overwrite data that it still reads.
    void step_back_after_arrival();

    // Called by the scheduler when the running thread ends, and when only threads that poll memory
    // are left. wake_polling() returns false if none of them may continue.
    void thread_ends();
    bool wake_polling();

    // Shared memory, as the threads access it.
    void enter_shared(void* object, std::size_t size, bool poison, const char* name, SharedGap& one,
                      SharedGap& other);
    void enter_shared(void* object, std::size_t size, bool poison, const char* name, std::size_t gap,
                      bool alone);
    bool shared_of_block(const void* pointer);
    bool shared_of_cluster(const void* pointer);
    std::size_t shared_address(const void* pointer, Site site);
    void* shared_pointer(std::uint64_t address, std::size_t bytes, Site site);

    // For the fault handler and the inspector.
    void* dynamic_shared_arena() const { return shared_.begin(); }
    bool in_dynamic_shared(const void* address) const { return shared_.in_arena(address); }
    bool beside_dynamic_shared(const void* address) const { return shared_.beside_dynamic(address); }
    const FibreStacks& stacks() const { return scheduler_.stacks(); }

    // Called from other OS threads.
    bool is_seen_running() const { return seen_launch_ != nullptr; }
    // True if the block of `launch` on this runner has only polled memory or waited for other
    // blocks for that long, or if none runs here.
    bool only_polls(const LaunchState& launch, PollingWatch::Time now, PollingWatch::Time duration) const;
    // True if the block of `launch` on this runner only polls or waits, and has polled since
    // `then`.
    bool has_polled_since(const LaunchState& launch, PollingWatch::Time then) const;

  private:
    void end_block();
    bool runs_in_rows(const ClusterState* cluster) const;
    void run_rows();
    void run_threads();
    void enter_shared(const SharedObject& object, bool poison, std::size_t gap);

    LaunchState* launch_ = nullptr;
    std::atomic<const LaunchState*> seen_launch_{nullptr};  // the same, for other OS threads
    BlockObserver* observer_ = nullptr;
    uint3 index_{0, 0, 0};
    bool failed_ = false;
    bool in_rows_ = false;
    // What a row came upon. Which thread it was is found by running the threads once more, one by
    // one.
    cudaError_t error_in_rows_ = cudaSuccess;
    std::string message_of_rows_;

    Scheduler scheduler_{*this};
    Collectives collectives_{*this};
    BlockBarrier barrier_{*this};
    NamedBarriers named_barriers_{*this};
    ArrivalBarriers arrival_barriers_{*this};
    Mbarriers mbarriers_{*this};
    BetweenBlocks between_blocks_{*this};
    AsyncEngine async_{*this};
    SharedArena shared_;
    PollingWatch polling_;
};

// in_shared_of_cluster(): is the pointer into the shared memory of a block of the cluster?
// place_in_own_shared(): the same offset in this block's shared memory, for a pointer into that of
// block `rank`.
bool in_shared_of_cluster(const void* pointer);
void* place_in_own_shared(const void* pointer, unsigned rank);

// The runner of this OS thread. A plain pointer and an inline function, because every barrier and
// shuffle calls it.
extern constinit thread_local BlockRunner* runner_of_os_thread;
BlockRunner& first_block_runner();
inline BlockRunner& block_runner() {
    return runner_of_os_thread != nullptr ? *runner_of_os_thread : first_block_runner();
}

}  // namespace cuda_on_cpu
