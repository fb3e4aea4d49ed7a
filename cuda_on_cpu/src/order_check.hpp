// Do the results of a kernel depend on the order in which its threads run? A barrier that is
// missing shows so, where a GPU nearly always hides it. The first small launches of each kernel run
// twice: once more in a copy of the process (fork), with blocks, warps and lanes in the other
// order. The copy cannot change anything here: neither memory nor what the program prints. What it
// wrote to allocations is compared afterwards. Kernels whose results may depend on the order by
// right are left out: those that call atomic functions, poll memory or read clocks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "memory.hpp"

namespace cuda_on_cpu {

struct LaunchState;

class OrderCheck {
  public:
    // Before the launch runs.
    explicit OrderCheck(LaunchState& launch);
    OrderCheck(const OrderCheck&) = delete;
    OrderCheck& operator=(const OrderCheck&) = delete;
    // After it has run.
    ~OrderCheck();

  private:
    bool applies() const;
    void start();
    [[noreturn]] void run_in_other_order();
    bool copy_has_finished();
    bool differs() const;

    LaunchState& launch_;
    std::vector<Allocation> allocations_;
    std::size_t bytes_ = 0;
    char* before_ =
        nullptr;  // shared with the copy: what the allocations held, and what they hold after the copy's run
    char* after_ = nullptr;
    pid_t copy_ = 0;  // 0: there is none
    long long started_ = 0;
};

}  // namespace cuda_on_cpu
