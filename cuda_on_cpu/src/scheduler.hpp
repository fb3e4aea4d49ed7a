// Which thread of the block runs next, and on which stack.
//
// Lazy fibres: a CUDA thread starts on any free fibre. If it ends without waiting, the next thread
// starts on the same stack, in a plain loop. Only a thread that waits keeps its stack; the loop
// then continues on another one.
//
// Rows: where the threads of a kernel only compute (cuda_on_cpu/rows.h), the block runs as a loop
// over them, and there is nothing to schedule.
//
// Order: the scheduler stays in a warp while one of its lanes can run, then goes to the next such
// warp. Lanes and warps run in ascending or descending order (CUDA_ON_CPU_ORDER); a correct kernel
// computes the same result either way.
//
// A part of the BlockRunner that makes a thread wait sets the lane's bit in Warp::at(Wait) and
// suspends it. The same part wakes the thread when the wait is over.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/thread.h"
#include "fibre.hpp"
#include "warp.hpp"

namespace cuda_on_cpu {

class BlockRunner;
class BlocksBarrier;
struct LaunchState;

// The reason why a thread is suspended. The Wait decides which of the lower members are valid.
struct Thread {
    Fibre* fibre = nullptr;  // where it is suspended
    const char* waits = "";  // the function it waits in; `site` is the place in the source
    Site site{"", 0};
    BlocksBarrier* blocks_barrier = nullptr;
    unsigned phase = 0;  // of the barrier between blocks, or the parity of the mbarrier's phase
    std::uint64_t* mbarrier = nullptr;
    unsigned named_barrier = 0;
    // For split barriers: the phase in which the thread has arrived but not waited yet.
    unsigned block_phase = 0;
    unsigned cluster_phase = 0;
    // In the thread's stack frame, while it runs a kernel that has some, in a file that uses them.
    std::span<const GridConstant> grid_constants;
};

class Scheduler {
  public:
    explicit Scheduler(BlockRunner& block);
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    void begin_block(const LaunchState& launch);
    // Runs threads until none can continue. False: no thread could run at all.
    bool run();
    // Runs all threads of a block in rows, in place of begin_block() and run().
    void run_rows(const LaunchState& launch);
    // After a failure some fibres are suspended in the middle of a kernel. Their stacks are reused
    // from the top.
    void abandon_fibres();
    void reverse_order() { descending_ = !descending_; }

    // The running thread.
    unsigned thread_number() const { return current_warp_ * kWarpLanes + current_lane_; }
    unsigned current_warp() const { return current_warp_; }
    unsigned current_lane() const { return current_lane_; }
    LaneMask lane_bit() const { return bit(current_lane_); }
    Warp& warp() { return warps_[current_warp_]; }
    Thread& thread() { return thread_[thread_number()]; }
    // Records why and where the running thread waits. Without a reason, the caller must record
    // which lanes to wake.
    Thread& note_wait(Wait reason, const char* name, Site site);
    Thread& note_wait(const char* name, Site site);
    // Runs the next thread; returns when `self`, the recorded thread, runs again.
    void hand_over(Thread& self);
    void suspend(const char* name, Site site);
    // The same, out of line, for cold callers.
    void wait(Wait reason, const char* name, Site site);
    // Lets all other threads run first.
    void yield();
    [[noreturn]] void end_thread();   // in any function; its stack is reused from the top
    [[noreturn]] void leave_block();  // no thread of the block runs after it

    // All threads.
    unsigned threads() const { return threads_; }
    unsigned live_threads() const { return live_threads_; }
    unsigned warps() const { return warp_count_; }
    Warp& warp(unsigned w) { return warps_[w]; }
    const Warp& warp(unsigned w) const { return warps_[w]; }
    const Thread& thread(unsigned number) const { return thread_[number]; }
    uint3 index(unsigned number) const { return index_[number]; }
    bool descending() const { return descending_; }
    // The first lane or warp of the mask, in the present order.
    unsigned first_of(LaneMask mask) const { return first(mask, descending_); }
    bool any_waits(Wait reason) const;
    bool any_polls() const { return polling_warps_ != 0; }
    // The running thread ends.
    void count_end() {
        warp().live &= ~lane_bit();
        --live_threads_;
    }

    void wake(unsigned w, LaneMask lanes) {
        warps_[w].ready |= lanes;
        busy_warps_ |= bit(w);
    }
    void wake_all(Wait reason, unsigned w) {
        if (warps_[w].at(reason) != 0) wake(w, std::exchange(warps_[w].at(reason), 0));
    }
    // Wakes the threads that wait for that reason and for which `over` returns true.
    template <class Predicate>
    bool wake_if(Wait reason, const Predicate& over);
    void wake_polling();
    // After a barrier: restarts with the first warp that has a lane that can run.
    void restart() { current_warp_ = first(busy_warps_, descending_); }

    // Is the address in a __grid_constant__ parameter of the running thread's kernel?
    bool is_grid_constant(const void* address) const;
    // Is the address below the running thread's stack, where a stack overflow would write?
    bool below_stack(const void* address) const { return address < current_fibre_->stack_bottom; }
    std::size_t stack_size() const { return current_fibre_->stack_size; }
    const FibreStacks& stacks() const { return stacks_; }

  private:
    static void fibre_entry();
    void run_threads();
    void run_all_rows();
    void set_shape(dim3 block);
    Thread* next();
    bool pick_warp();
    void let_converge();
    Fibre& fibre_of(const Thread& thread);
    Fibre& free_fibre();

    // References to thread-local variables of this OS thread, because in position-independent code
    // each access to one may be a function call.
    unsigned& current_lane_ = cuda_on_cpu::current_lane;
    unsigned& current_warp_ = cuda_on_cpu::current_warp;
    uint3& thread_index_ = threadIdx;
    unsigned& polls_ = polls;

    BlockRunner& block_;
    bool descending_;
    void (*kernel_)(const void*) = nullptr;
    const void* closure_ = nullptr;
    const LaunchState* in_rows_ = nullptr;  // the launch whose block runs in rows

    dim3 shape_{0, 0, 0};
    unsigned threads_ = 0;
    unsigned warp_count_ = 0;
    unsigned live_threads_ = 0;
    LaneMask busy_warps_ = 0;  // warps with a lane that can run
    LaneMask polling_warps_ = 0;
    std::array<Warp, kMaxWarps> warps_;
    std::array<Thread, kMaxThreads> thread_;
    std::array<uint3, kMaxThreads> index_;

    FibreStacks stacks_;
    Fibre caller_;  // the OS thread's own stack
    std::vector<std::unique_ptr<Fibre>> all_fibres_;
    std::vector<Fibre*> idle_fibres_;
    Fibre* current_fibre_ = nullptr;
    Fibre abandoned_;  // context of a thread that has ended inside a function
};

// --- The hot path, inline ------------------------------------------------------------------------

// Selects the thread that runs next and makes it the current one. Null: none can run.
[[gnu::always_inline]] inline Thread* Scheduler::next() {
    for (;;) {
        const unsigned w = current_warp_;
        Warp& warp = warps_[w];
        if (const LaneMask runnable = warp.ready | warp.unstarted; runnable != 0) {
            const unsigned lane = first(runnable, descending_);
            const unsigned number = w * kWarpLanes + lane;
            warp.ready &= ~bit(lane);
            current_lane_ = lane;
            thread_index_ = index_[number];
            polls_ = 0;
            return &thread_[number];
        }
        if (warp.at(Wait::converging) != 0) {
            let_converge();
        } else if (!pick_warp()) {
            return nullptr;
        }
    }
}

// The fibre on which the current thread resumes or starts; it becomes the current fibre.
[[gnu::always_inline]] inline Fibre& Scheduler::fibre_of(const Thread& thread) {
    const bool suspended = (warps_[current_warp_].unstarted & bit(current_lane_)) == 0;
    current_fibre_ = suspended ? thread.fibre : &free_fibre();
    return *current_fibre_;
}

[[gnu::always_inline]] inline Thread& Scheduler::note_wait(const char* name, Site site) {
    Thread& self = thread_[thread_number()];
    self.waits = name;
    self.site = site;
    self.fibre = current_fibre_;
    return self;
}

[[gnu::always_inline]] inline Thread& Scheduler::note_wait(Wait reason, const char* name, Site site) {
    warps_[current_warp_].at(reason) |= bit(current_lane_);
    return note_wait(name, site);
}

[[gnu::always_inline]] inline void Scheduler::hand_over(Thread& self) {
    const Thread* const next = this->next();
    if (next == &self) return;
    switch_fibre(*self.fibre, next != nullptr ? fibre_of(*next) : caller_);
}

[[gnu::always_inline]] inline void Scheduler::suspend(const char* name, Site site) {
    hand_over(note_wait(name, site));
}

template <class Predicate>
bool Scheduler::wake_if(Wait reason, const Predicate& over) {
    bool woken = false;
    for (unsigned w = 0; w < warp_count_; ++w) {
        for (const unsigned lane : lanes_of(warps_[w].at(reason))) {
            if (!over(std::as_const(thread_[w * kWarpLanes + lane]))) continue;
            warps_[w].at(reason) &= ~bit(lane);
            wake(w, bit(lane));
            woken = true;
        }
    }
    return woken;
}

}  // namespace cuda_on_cpu
