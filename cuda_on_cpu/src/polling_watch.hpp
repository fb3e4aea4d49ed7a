// How long the block that runs has done nothing but poll memory, and whether it may go on: the
// value may still come from another block, or never.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cuda_on_cpu {

struct LaunchState;

class PollingWatch {
  public:
    using Time = std::chrono::steady_clock::rep;

    // The block does something else.
    void note_progress() { since_.store(0, std::memory_order_relaxed); }
    // All threads of the block poll, or wait. False: for too long, and the launch has failed.
    bool poll_on(LaunchState& launch);
    // Asked by other OS threads: has the block only polled, for that long?
    bool only_polls(Time now, Time duration) const;
    // Does it only poll, and has it looked at the memory since then?
    bool has_polled_since(Time then) const;

  private:
    bool look_at_others(LaunchState& launch, Time now);
    void give_way(LaunchState& launch, Time now);

    // Other OS threads read these. A relaxed store costs what a plain one does.
    std::atomic<Time> since_{0};  // 0: the block does something else
    std::atomic<Time> last_poll_{0};
    std::atomic<Time> looked_since_{0};  // the poll before: what it looked at is known
    Time next_look_ = 0;
    std::uint64_t blocks_begun_ = 0;  // of the launch, when this one began to poll
    Time polls_since_ = 0;
    std::uint64_t blocks_seen_ = 0;
    Time all_wait_since_ = 0;  // perhaps: no other block has ended since
    unsigned rounds_ = 0;
};

}  // namespace cuda_on_cpu
