// Measures how long the running block has only polled memory, and decides whether it may continue.
// Another block may still write the value, or it may never be written.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cuda_on_cpu {

struct LaunchState;

class PollingWatch {
  public:
    using Time = std::chrono::steady_clock::rep;

    // The block has done something other than polling.
    void note_progress() { since_.store(0, std::memory_order_relaxed); }
    // Called when all threads of the block poll or wait. False: they have done so for too long, and
    // the launch has failed.
    bool poll_on(LaunchState& launch);
    // Called from other OS threads: has the block only polled for that long?
    bool only_polls(Time now, Time duration) const;
    // Does the block only poll, and has it read the memory since `then`?
    bool has_polled_since(Time then) const;

  private:
    bool look_at_others(LaunchState& launch, Time now);
    void give_way(LaunchState& launch, Time now);

    // Read by other OS threads. A relaxed store costs no more than a plain one.
    std::atomic<Time> since_{0};  // 0: the block is not polling
    std::atomic<Time> last_poll_{0};
    std::atomic<Time> looked_since_{0};  // the poll before, whose reads have finished
    Time next_look_ = 0;
    std::uint64_t blocks_begun_ = 0;  // number of blocks begun when this one started to poll
    Time polls_since_ = 0;
    std::uint64_t blocks_seen_ = 0;
    Time all_wait_since_ = 0;  // no other block is known to have ended since
    unsigned rounds_ = 0;
};

}  // namespace cuda_on_cpu
