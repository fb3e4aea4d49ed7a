// What the blocks of one launch share.
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
#include "observer.hpp"
#include "worker_pool.hpp"

namespace cuda_on_cpu {

inline std::uint64_t volume(dim3 d) {
    return std::uint64_t{d.x} * d.y * d.z;
}

// Of block, cluster or thread number `i`.
inline uint3 index_in(dim3 extent, std::uint64_t i) {
    return uint3{static_cast<unsigned>(i % extent.x), static_cast<unsigned>(i / extent.x % extent.y),
                 static_cast<unsigned>(i / (std::uint64_t{extent.x} * extent.y))};
}

// A barrier between several blocks, each on an OS thread of its own. Participants are the threads
// of a cluster, or the blocks of a cooperative grid.
class BlocksBarrier {
  public:
    void expect(unsigned participants) { expected_ = participants; }
    // One participant arrives. Returns the phase it belongs to, which was phase() before.
    unsigned arrive();
    unsigned phase() const { return phase_.load(std::memory_order_acquire); }
    bool passed(unsigned phase) const { return phase_.load(std::memory_order_acquire) != phase; }
    // Blocks the OS thread until the phase is over. False: the launch has failed, or the barrier
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

// What the blocks of a cluster wait for when none of their threads can go on: that another block
// does something.
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

    // Where a block's shared memory lies: dynamic, and (relative to threadIdx) static, which is
    // thread-local.
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

// What a kernel's parameter holds, or a part of it: perhaps an address.
struct NamedAddress {
    std::string parameter;
    std::uintptr_t address = 0;
};

struct LaunchState {
    ~LaunchState() { delete children.load(); }
    ChildGrids& make_children();
    Kernel* kernel = nullptr;
    std::string name;
    std::shared_ptr<const void> closure;
    void (*run)(const void*) = nullptr;
    LaunchConfiguration configuration;
    int device = 0;
    std::vector<NamedAddress> addresses;  // of the arguments; only where an observer watches

    // Independent blocks: the loop that takes the next block, and the OS threads that run it.
    std::atomic<std::uint64_t> next_block{0};
    std::function<void()> work;
    Team* team = nullptr;
    std::atomic<unsigned> os_threads{1};
    unsigned most_os_threads = 0;  // which blocks that poll may ask for; 0: none has
    bool system_is_full = false;   // there would be more if it had room
    // Of OS threads that polling blocks have asked for: when, and how many blocks had ended.
    std::atomic<std::chrono::steady_clock::rep> last_begin{0};
    std::uint64_t ended_at_last_begin = 0;

    BlocksBarrier grid_barrier;
    std::shared_ptr<ClusterState> cluster;       // the one that is running
    LaunchObserver* observer = nullptr;          // of this launch
    void* observed = nullptr;                    // the observer's own
    bool repeated = false;                       // this is another run of an OrderCheck, ...
    unsigned polls_repeated = 0;                 // ... in which so often only threads that poll were left
    Task* task = nullptr;                        // that the launch is part of; null: the host itself runs it
    std::atomic<ChildGrids*> children{nullptr};  // if there are any
    std::optional<std::vector<std::uint64_t>> few_blocks;  // the only ones to run
    std::atomic<bool> polled_in_vain{false};
    std::atomic<bool> failed{false};
    std::atomic<cudaError_t> error{cudaSuccess};
    std::mutex report_mutex;

    // Prints and keeps the first failure, and stops the others.
    void fail(cudaError_t code, const std::string& message, Site site = Site{"", 0});
    // Of a block that has polled since `since`.
    void let_other_blocks_begin(std::chrono::steady_clock::rep since, std::chrono::steady_clock::rep now);
    std::uint64_t blocks_at_once() const {
        return team != nullptr ? os_threads.load() : volume(configuration.grid);
    }
    // "; 7 of 65 blocks have not begun...", or nothing.
    std::string blocks_that_wait_to_begin() const;
    // Called every 10 ms by each block while all blocks that run only poll memory. Perhaps the host
    // has yet to write it, or to launch what does.
    void polls_in_vain();
};

}  // namespace cuda_on_cpu
