// OS threads that are kept between launches. OpenMP would do for independent blocks; cooperative
// grids and clusters need a guaranteed OS thread for every block, and threads whose stacks have
// room for all `__shared__` variables.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

namespace cuda_on_cpu {

// Runs `work` on an OS thread of its own. Throws std::system_error if the system gives no more
// threads.
void start_detached(std::function<void()> work);

// Some work going on at the same time, each piece on an OS thread of its own.
class Team {
  public:
    Team() = default;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team() { wait(); }

    // Throws std::system_error if the system gives no more threads. May be called by the work
    // itself.
    void start(std::function<void()> work);
    void wait();

  private:
    std::mutex mutex_;
    std::condition_variable ended_;
    unsigned running_ = 0;
};

}  // namespace cuda_on_cpu
