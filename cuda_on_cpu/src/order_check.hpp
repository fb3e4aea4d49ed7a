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
// take long. So a few blocks are compared first, in both orders, up to their first barriers. A
// launch of few blocks that ends before that needs one run only.
//
// Copies of a process cost little, copies of its memory more: a run hands over only the pages that
// it has written, which the system knows. The first copy runs nothing itself, so that its memory
// stays as it was before the launch, and is asked again if the order shows.
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

#include <semaphore.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory.hpp"

namespace cuda_on_cpu {

struct LaunchState;

// What lies in one page.
struct Piece {
    char* begin;
    std::size_t size;
    std::size_t offset;  // in results
};

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
    // Between the process and its copies.
    struct Talk {
        std::atomic<int> answer = -1;           // none yet
        std::atomic<bool> ended_early = false;  // the last run, at its barriers
        sem_t answered;
        sem_t asked_about_blocks;
    };
    static void prepare_copy();
    [[noreturn]] void find_out();
    void give_answer(Answer answer);
    Answer compare_orders();
    bool depends_on_blocks_alone();
    bool copy_finds_blocks();
    // Runs a copy of this process, with one OS thread. The copy returns an answer and leaves no
    // other trace. No answer: the copy cannot be made.
    Answer run_copy(Order order, char* results);
    [[noreturn]] void run_again(Order order, char* results);
    [[noreturn]] void answer_run() const;
    [[noreturn]] static void give_up();
    static void run_thread_of_warp(const void* closure);
    Answer compare_orders_of_threads();
    Answer compare_orders_of_few_blocks();
    std::uint64_t few_blocks() const;
    // True if no warp sees what another one has written, and the results are the same.
    bool differs_with_warps_apart();
    Answer answer_of_copy();
    bool differs() const;

    void cut_into_pieces();
    // The contents of pieces, and for each of them whether the run has changed it. Those that it
    // has not changed are as in the first copy.
    char* new_results() const;
    void store_changes(char* results) const;
    template <class Function>
    bool any_pair(const char* a, const char* b, const Function& function) const;
    bool are_same(const char* a, const char* b) const;

    LaunchState& launch_;
    std::vector<Allocation> allocations_;  // and `__device__` variables
    std::vector<Piece> pieces_;            // of them
    std::size_t bytes_ = 0;
    bool has_many_threads_ = false;  // only a few blocks run
    // Shared with the copy: what its run has changed, as it was before and as it is after it.
    char* before_ = nullptr;
    char* after_ = nullptr;
    Talk* talk_ = nullptr;
    pid_t copy_ = 0;  // 0: there is none
    long long started_ = 0;
};

}  // namespace cuda_on_cpu
