#include "arrival_barriers.hpp"

#include <string>

#include "block.hpp"

namespace cuda_on_cpu {

void ArrivalBarriers::init(const void* barrier, std::int64_t expected, Site site) {
    if (!block_.shared().holds(barrier, sizeof(std::uint64_t)))
        block_.fail(cudaErrorIllegalAddress, "a barrier that is not in the block's shared memory", site);
    if (expected <= 0) {
        block_.fail(cudaErrorLaunchFailure,
                    "a barrier that expects " + std::to_string(expected) + " arrivals; expected at least 1",
                    site);
    }
    Barrier& state = barriers_[barrier];
    state = {};
    state.expected = state.pending = expected;
    block_.notify(event::ArrivalBarrierBegun{barrier});
}

ArrivalBarriers::Barrier& ArrivalBarriers::find(const void* barrier, Site site) {
    const auto found = barriers_.find(barrier);
    if (found == barriers_.end())
        block_.fail(cudaErrorLaunchFailure, "a barrier that was not initialised", site);
    return found->second;
}

std::uint64_t ArrivalBarriers::arrive(const void* barrier, std::int64_t count, Site site) {
    Barrier& state = find(barrier, site);
    if (count < 1 || count > state.pending) {
        block_.fail(cudaErrorLaunchFailure,
                    std::to_string(count) + " arrivals at a barrier that expects " +
                        std::to_string(state.pending) + " more of " + std::to_string(state.expected),
                    site);
    }
    block_.notify(event::ArrivalBarrierArrived{block_.scheduler().thread_number(), barrier, site});
    const std::uint64_t phase = state.phase;
    state.pending -= count;
    if (state.pending == 0) complete_phase(barrier, state);
    block_.step_back_after_arrival();
    return phase;
}

void ArrivalBarriers::complete_phase(const void* barrier, Barrier& state) {
    ++state.phase;
    block_.note_progress();
    state.pending = state.expected;
    block_.async().copies().append(state.complete, state.copies);
    block_.notify(event::ArrivalBarrierCompleted{barrier});
    for (const unsigned thread : state.waiting)
        block_.scheduler().wake(thread / kWarpLanes, bit(thread % kWarpLanes));
    state.waiting.clear();
}

void ArrivalBarriers::wait_for_phase(const void* barrier, std::uint64_t phase, const char* name, Site site) {
    Scheduler& scheduler = block_.scheduler();
    if (Barrier& state = find(barrier, site); state.phase <= phase) {
        state.waiting.push_back(scheduler.thread_number());
        scheduler.suspend(name, site);
    }
    block_.async().copies().complete(find(barrier, site).complete);
    block_.notify(event::ArrivalBarrierLeft{scheduler.thread_number(), barrier, site});
}

void ArrivalBarriers::attach_copies(const void* barrier, Site site) {
    const unsigned self = block_.scheduler().thread_number();
    block_.async().copies().move_to(find(barrier, site).copies, self);
    block_.notify(event::CopiesAttached{self});
}

}  // namespace cuda_on_cpu
