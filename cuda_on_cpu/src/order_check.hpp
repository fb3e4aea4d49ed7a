// Do the results of a kernel depend on the order in which its threads run? A barrier that is
// missing shows so, where a GPU nearly always hides it. The first small launches of each kernel run
// twice: once more in a copy of the process (fork), with blocks, warps and lanes in the other
// order. The copy cannot change anything here: neither memory nor what the program prints. What it
// wrote to allocations is compared afterwards. Kernels that read clocks or allocate are left out.
//
// Atomic functions give other results in another order by right: tickets, places in a list, the
// rounding of sums. So a kernel that calls them is compared otherwise. Three more copies run its
// blocks one after the other, on one OS thread. With the threads of each block in the other order,
// nothing may change but rounding, if
//   - several threads of a block use atomic functions only for sums, and for extremes in shared
//     memory, and none of these uses the result (the translator marks such calls). What one thread
//     of a block gets from an atomic function (a ticket, the number of blocks that are done)
//     depends on other blocks only, and they run in the same order;
//   - it has shared memory, where barriers are forgotten;
//   - nothing changes when blocks run in the other order, or when all sums in device memory are
//     added after the last block. Else the kernel works on what other threads have just written, as
//     relaxation in a graph does, and may do so within a block, too.
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
    enum class Answer { same_unless_it_differs, unknown, atomics, depends, depends_on_blocks, by_right };
    struct Order {
        bool blocks_reversed = false;
        bool threads_reversed = false;
        bool sums_late = false;
    };
    static void prepare_copy();
    [[noreturn]] void find_out();
    // Are the results the same with the threads of each block in the other order? Then only the
    // order of blocks changes them.
    bool depends_on_blocks_alone();
    [[noreturn]] void find_out_about_blocks();
    // A copy of this process, with one OS thread. It ends without a trace, with an answer; nothing
    // if it cannot be made.
    Answer run_copy(Order order, char* results);
    [[noreturn]] void run_again(Order order, char* results);
    Answer compare_orders_of_threads();
    Answer answer_of_copy();
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
