// OS threads that are kept between launches. OpenMP would suffice for independent blocks, but
// cooperative grids and clusters need a guaranteed OS thread for every block, and stacks with room
// for all `__shared__` variables.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

namespace cuda_on_cpu {

// Runs `work` on its own OS thread. Throws std::system_error if the system has no more threads.
void start_detached(std::function<void()> work);

// Pieces of work that run at the same time, each on its own OS thread.
class Team {
  public:
    Team() = default;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team() { wait(); }

    // Throws std::system_error if the system has no more threads. The work itself may call it.
    void start(std::function<void()> work);
    void wait();

  private:
    std::mutex mutex_;
    std::condition_variable ended_;
    unsigned running_ = 0;
};

}  // namespace cuda_on_cpu
