#include "scheduler.hpp"

#include <algorithm>

#include "block.hpp"
#include "environment.hpp"
#include "launch_state.hpp"

namespace cuda_on_cpu {

Scheduler::Scheduler(BlockRunner& block) : block_(block), descending_(environment().descending) {
    all_fibres_.reserve(kMaxThreads + 1);
    idle_fibres_.reserve(kMaxThreads + 1);
}

// --- The block's threads -------------------------------------------------------------------------

void Scheduler::begin_block(const LaunchState& launch) {
    kernel_ = launch.run;
    closure_ = launch.closure.get();
    const dim3 block = launch.configuration.block;
    if (shape_.x != block.x || shape_.y != block.y || shape_.z != block.z) set_shape(block);
    live_threads_ = threads_;
    busy_warps_ = warp_count_ == 32 ? ~LaneMask{0} : bit(warp_count_) - 1;
    polling_warps_ = 0;
    for (unsigned w = 0; w < warp_count_; ++w)
        warps_[w].begin_block(std::min(kWarpLanes, threads_ - w * kWarpLanes));
    restart();
}

void Scheduler::set_shape(dim3 block) {
    shape_ = block;
    threads_ = block.x * block.y * block.z;
    warp_count_ = (threads_ + kWarpLanes - 1) / kWarpLanes;
    unsigned i = 0;
    for (unsigned z = 0; z < block.z; ++z) {
        for (unsigned y = 0; y < block.y; ++y) {
            for (unsigned x = 0; x < block.x; ++x)
                index_[i++] = uint3{x, y, z};
        }
    }
}

// --- Running them --------------------------------------------------------------------------------

// Threads switch directly to each other; control returns here when none of them can run.
bool Scheduler::run() {
    const Thread* const thread = next();
    if (thread != nullptr) switch_fibre(caller_, fibre_of(*thread));
    return thread != nullptr;
}

void Scheduler::run_rows(const LaunchState& launch) {
    in_rows_ = &launch;
    current_warp_ = current_lane_ = 0;
    thread_index_ = uint3{0, 0, 0};
    current_fibre_ = &free_fibre();
    switch_fibre(caller_, *current_fibre_);
    in_rows_ = nullptr;
}

void Scheduler::run_all_rows() {
    in_rows_->run_block(in_rows_->closure.get(),
                        {blockIdx, in_rows_->configuration.block, in_rows_->configuration.grid});
    Fibre& self = *current_fibre_;
    idle_fibres_.push_back(&self);
    switch_fibre(self, caller_);
}

void Scheduler::fibre_entry() {
    block_runner().scheduler().run_threads();
}

// The loop of every fibre: runs threads that have not started, until a thread must continue on
// another stack.
void Scheduler::run_threads() {
    for (;;) {
        if (in_rows_ != nullptr) {
            run_all_rows();
            continue;
        }
        warps_[current_warp_].unstarted &= ~bit(current_lane_);
        kernel_(closure_);
        block_.thread_ends();

        const Thread* const thread = next();
        if (thread != nullptr && (warps_[current_warp_].unstarted & bit(current_lane_)) != 0) continue;
        Fibre& self = *current_fibre_;
        idle_fibres_.push_back(&self);
        switch_fibre(self, thread != nullptr ? fibre_of(*thread) : caller_);
        // Control returns here when another thread that has not started is next.
    }
}

void Scheduler::end_thread() {
    thread().grid_constants = {};
    block_.thread_ends();
    const Thread* const thread = next();
    stacks_.create(*current_fibre_, fibre_entry);
    idle_fibres_.push_back(current_fibre_);
    switch_fibre(abandoned_, thread != nullptr ? fibre_of(*thread) : caller_);
    __builtin_unreachable();
}

void Scheduler::leave_block() {
    Fibre nowhere;  // this thread is never switched to again
    switch_fibre(nowhere, caller_);
    __builtin_unreachable();
}

bool Scheduler::pick_warp() {
    busy_warps_ &= ~bit(current_warp_);
    if (busy_warps_ == 0 && !block_.async().wake_for_products() && !block_.wake_polling()) return false;
    restart();
    return true;
}

// Called when no lane of the warp can run and some wait in __activemask.
void Scheduler::let_converge() {
    block_.collectives().converge(current_warp_);
}

Fibre& Scheduler::free_fibre() {
    if (!idle_fibres_.empty()) {
        Fibre* fibre = idle_fibres_.back();
        idle_fibres_.pop_back();
        return *fibre;
    }
    all_fibres_.push_back(std::make_unique<Fibre>());
    stacks_.create(*all_fibres_.back(), fibre_entry);
    return *all_fibres_.back();
}

void Scheduler::abandon_fibres() {
    for (Thread& thread : thread_)
        thread.grid_constants = {};
    idle_fibres_.clear();
    for (const auto& fibre : all_fibres_) {
        stacks_.create(*fibre, fibre_entry);
        idle_fibres_.push_back(fibre.get());
    }
}

bool Scheduler::is_grid_constant(const void* address) const {
    const auto* const byte = static_cast<const volatile char*>(address);
    const auto holds = [byte](const GridConstant& parameter) {
        const auto* const begin = static_cast<const volatile char*>(parameter.begin);
        return byte >= begin && byte < begin + parameter.size;
    };
    return std::ranges::any_of(thread_[thread_number()].grid_constants, holds);
}

// --- Waiting and waking --------------------------------------------------------------------------

void Scheduler::wait(Wait reason, const char* name, Site site) {
    hand_over(note_wait(reason, name, site));
}

void Scheduler::yield() {
    polling_warps_ |= bit(current_warp_);
    wait(Wait::polling, "polling memory", Site{"", 0});
}

bool Scheduler::any_waits(Wait reason) const {
    return std::any_of(warps_.begin(), warps_.begin() + warp_count_,
                       [reason](const Warp& warp) { return warp.at(reason) != 0; });
}

void Scheduler::wake_polling() {
    for (const unsigned w : lanes_of(std::exchange(polling_warps_, 0)))
        wake_all(Wait::polling, w);
}

}  // namespace cuda_on_cpu
