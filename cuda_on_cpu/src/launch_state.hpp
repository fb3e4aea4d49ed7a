// The state that the blocks of one launch share.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "child_grids.hpp"
#include "cuda_on_cpu/launch.h"
#include "graph_run.hpp"
#include "observer.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {

inline std::uint64_t volume(dim3 d) {
    return std::uint64_t{d.x} * d.y * d.z;
}

// The index of block, cluster or thread number `i`.
inline uint3 index_in(dim3 extent, std::uint64_t i) {
    return uint3{static_cast<unsigned>(i % extent.x), static_cast<unsigned>(i / extent.x % extent.y),
                 static_cast<unsigned>(i / (std::uint64_t{extent.x} * extent.y))};
}

// A barrier between several blocks, each on its own OS thread. Its participants are the threads of
// a cluster or the blocks of a cooperative grid.
class BlocksBarrier {
  public:
    void expect(unsigned participants) { expected_ = participants; }
    // One participant arrives. Returns the phase it belongs to, which was phase() before.
    unsigned arrive();
    unsigned phase() const { return phase_.load(std::memory_order_acquire); }
    bool passed(unsigned phase) const { return phase_.load(std::memory_order_acquire) != phase; }
    // Blocks the OS thread until the phase has ended. False: the launch has failed, or the barrier
    // can never complete.
    bool wait(unsigned phase, const std::atomic<bool>& cancelled);
    // A participant has ended and counts as arrived from now on, as the hardware does for clusters.
    // True: that ended the phase.
    bool drop();
    // A required participant has ended: a wait for this barrier can never end.
    void desert();
    void wake_all();

  private:
    void complete();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<unsigned> phase_{0};
    unsigned expected_ = 0;
    unsigned arrived_ = 0;
    bool deserted_ = false;
};

// Events of a cluster: a block whose threads all wait sleeps until another block causes one.
class ClusterEvents {
  public:
    explicit ClusterEvents(unsigned blocks) : blocks_(blocks) {}
    unsigned count() const { return count_.load(std::memory_order_acquire); }
    void happened();
    // Waits until more than `seen` events have happened. False: all blocks wait or have ended, or
    // the launch has failed.
    bool wait(unsigned seen, const std::atomic<bool>& cancelled);
    void block_ended();
    void wake_all();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<unsigned> count_{0};
    unsigned blocks_;
    unsigned waiting_ = 0;  // blocks, since the last event
};

class BlockRunner;

struct ClusterState {
    ClusterState(dim3 dimensions, unsigned threads)
        : events(static_cast<unsigned>(volume(dimensions))), dims(dimensions) {
        barrier.expect(threads);
    }

    // Where a block's shared memory is: dynamic shared memory, and static shared memory, which is
    // thread-local and is located relative to threadIdx.
    struct Block {
        char* dynamic_arena;
        char* thread_local_base;
        BlockRunner* runner;
    };
    BlocksBarrier barrier;
    ClusterEvents events;
    dim3 dims;
    std::array<Block, 16> block{};
};

// The value of a kernel's parameter or of a part of it, which may be an address.
struct NamedAddress {
    std::string parameter;
    std::uintptr_t address = 0;
    bool may_be_unset = false;  // a word of a large structure, of which the program may set a part
};

struct LaunchState {
    ~LaunchState() { delete children.load(); }
    ChildGrids& make_children();
    Kernel* kernel = nullptr;
    std::string name;
    std::shared_ptr<const void> closure;
    void (*run)(const void*) = nullptr;
    RunBlock run_block = nullptr;  // null: the scheduler runs each thread by itself
    LaunchConfiguration configuration;
    int device = 0;
    unsigned nesting = 0;                 // 0: the host has launched it; else one more than of its parent
    std::shared_ptr<GraphRun> graph_run;  // that the launch belongs to; null: none
    std::vector<NamedAddress> addresses;  // in the arguments; only with an observer

    // Independent blocks: the loop that takes the next block, and the OS threads that run it.
    std::atomic<std::uint64_t> next_block{0};
    std::function<void()> work;
    Team* team = nullptr;
    std::atomic<unsigned> os_threads{1};
    unsigned most_os_threads = 0;  // upper bound of os_threads when blocks poll; 0: not computed yet
    bool system_is_full = false;   // the system has no room for more OS threads
    // The last OS thread started for a polling block: when it was started, and how many blocks had
    // ended by then.
    std::atomic<std::chrono::steady_clock::rep> last_begin{0};
    std::uint64_t ended_at_last_begin = 0;

    BlocksBarrier grid_barrier;
    std::shared_ptr<ClusterState> cluster;  // the cluster that is running
    LaunchObserver* observer = nullptr;     // of this launch
    void* observed = nullptr;               // the observer's own
    // A repetition for an OrderCheck, and how often only polling threads were left in it.
    bool repeated = false;
    unsigned polls_repeated = 0;
    Task* task = nullptr;                        // the task of the launch; null: the host itself runs it
    std::atomic<ChildGrids*> children{nullptr};  // if there are any
    std::optional<std::vector<std::uint64_t>> few_blocks;  // the only ones to run
    std::atomic<bool> polled_in_vain{false};
    std::atomic<bool> failed{false};
    std::atomic<cudaError_t> error{cudaSuccess};
    std::mutex report_mutex;

    // Prints and stores the first failure, and stops the other blocks.
    void fail(cudaError_t code, const std::string& message, Site site = Site{"", 0});
    // Called by a block that has polled since `since`.
    void let_other_blocks_begin(std::chrono::steady_clock::rep since, std::chrono::steady_clock::rep now);
    std::uint64_t blocks_at_once() const {
        return team != nullptr ? os_threads.load() : volume(configuration.grid);
    }
    // "; 7 of 65 blocks have not begun..."; empty if all blocks have.
    std::string blocks_that_wait_to_begin() const;
    // Called every 10 ms by each block while all running blocks only poll memory. The value may
    // have to come from the host, or from a kernel that the host has not launched yet.
    void polls_in_vain();
};

}  // namespace cuda_on_cpu
