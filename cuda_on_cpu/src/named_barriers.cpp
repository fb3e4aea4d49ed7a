#include "named_barriers.hpp"

#include "block.hpp"

namespace cuda_on_cpu {

void NamedBarriers::meet(unsigned id, unsigned threads, Site site, bool waits) {
    Scheduler& scheduler = block_.scheduler();
    if (id < 1 || id >= barriers_.size() || threads < 1 || threads % kWarpLanes != 0 ||
        threads > scheduler.threads())
        block_.fail(cudaErrorLaunchFailure,
                    "named barrier " + std::to_string(id) + " for " + std::to_string(threads) +
                        " threads; expected a number of 1 to 15 (0 is __syncthreads), and a multiple of 32 "
                        "threads of the " +
                        std::to_string(scheduler.threads()) + " that the block has",
                    site);
    Barrier& barrier = barriers_[id];
    if (barrier.arrived > 0 && barrier.expected != threads)
        block_.fail(cudaErrorLaunchFailure,
                    "named barrier " + std::to_string(id) + " for " + std::to_string(threads) +
                        " threads; others wait there for " + std::to_string(barrier.expected),
                    site);
    barrier.expected = threads;
    const unsigned self = scheduler.thread_number();
    block_.notify(event::ArrivalBarrierArrived{self, &barrier, site});
    if (++barrier.arrived < threads) {
        if (!waits) return;
        scheduler.thread().named_barrier = id;
        scheduler.wait(Wait::named_barrier, "named_barrier", site);
    } else {
        barrier.arrived = 0;
        block_.notify(event::ArrivalBarrierCompleted{&barrier});
        scheduler.wake_if(Wait::named_barrier,
                          [id](const Thread& thread) { return thread.named_barrier == id; });
        if (!waits) return;
    }
    block_.notify(event::ArrivalBarrierLeft{self, &barrier, site});
}

std::string NamedBarriers::describe(unsigned id) const {
    return std::to_string(barriers_[id].arrived) + " of " + std::to_string(barriers_[id].expected) +
           " threads there";
}

}  // namespace cuda_on_cpu
