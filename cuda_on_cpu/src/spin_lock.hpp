#pragma once

#include <sched.h>

#include <atomic>

namespace cuda_on_cpu {

// A lock that a signal handler can use, where a mutex is not allowed.
class SpinLock {
  public:
    void lock() {
        while (taken_.exchange(true, std::memory_order_acquire))
            sched_yield();
    }
    void unlock() { taken_.store(false, std::memory_order_release); }

  private:
    std::atomic<bool> taken_{false};
};

}  // namespace cuda_on_cpu
