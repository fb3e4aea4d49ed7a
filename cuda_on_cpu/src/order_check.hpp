// Do the results of a kernel depend on the order in which its threads run? This reveals a missing
// barrier, which a GPU nearly always hides. The first small launches of each kernel run a second
// time in a copy of the process (fork), with blocks, warps and lanes in the opposite order. The
// copy affects neither the memory nor the output of the program. Afterwards, the contents of its
// allocations and its known `__device__` variables are compared. Kernels that read clocks or
// allocate are left out.
//
// In a kernel without barriers two orders may agree on a wrong result: eight warps that add to one
// element give eight times the sum in both. So each warp also runs on the memory as it was before
// the launch, as if all of them had loaded before one stores. Launches may have many threads, or
// take long. So a few blocks are compared first, in both orders, up to their first barriers.
//
// The results of atomic functions may legitimately depend on the order: tickets, places in a list,
// the rounding of sums. A kernel that calls them is therefore compared differently. Three more
// copies run its blocks one after the other, on one OS thread. With the threads of each block in
// the opposite order, only rounding may change, if
//   - several threads of a block use atomic functions only for sums, and for extremes in shared
//     memory, and none of these uses the result (the translator marks such calls). What one thread
//     of a block gets from an atomic function (a ticket, the number of blocks that are done)
//     depends on other blocks only, and they run in the same order;
//   - it has shared memory, where barriers are forgotten;
//   - nothing changes when blocks run in the other order, or when all sums in device memory are
//     added after the last block. Otherwise the kernel uses values that other threads have just
//     written, as relaxation in a graph does, and may also do so within a block.
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
    void add_variables();
    void start();
    enum class Answer {
        same_unless_it_differs,
        unknown,
        atomics,
        depends,
        depends_on_blocks,
        differs_apart,
        by_right
    };
    struct Order {
        bool blocks_reversed = false;
        bool threads_reversed = false;
        bool sums_late = false;
        bool warps_apart = false;
        std::uint64_t most_blocks = ~std::uint64_t{0};  // with a limit also for their barriers
    };
    static void prepare_copy();
    [[noreturn]] void find_out();
    // True if the results stay the same with the threads of each block in the opposite order, so
    // that only the order of blocks changes them.
    bool depends_on_blocks_alone();
    [[noreturn]] void find_out_about_blocks();
    // Runs a copy of this process, with one OS thread. The copy returns an answer and leaves no
    // other trace. No answer: the copy cannot be made.
    Answer run_copy(Order order, char* results);
    [[noreturn]] void run_again(Order order, char* results);
    [[noreturn]] void answer_run() const;
    Answer compare_orders_of_threads();
    Answer compare_orders_of_few_blocks();
    // True if no warp sees what another one has written, and the results are the same.
    bool differs_with_warps_apart();
    Answer answer_of_copy();
    bool differs() const;

    LaunchState& launch_;
    std::vector<Allocation> allocations_;  // and `__device__` variables
    std::size_t bytes_ = 0;
    bool has_many_threads_ = false;  // only a few blocks run
    // Shared with the copy: the contents of the allocations before its run and after it.
    char* before_ = nullptr;
    char* after_ = nullptr;
    pid_t copy_ = 0;  // 0: there is none
    long long started_ = 0;
};

}  // namespace cuda_on_cpu
