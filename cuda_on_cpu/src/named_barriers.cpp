#include "named_barriers.hpp"

#include <algorithm>

#include "block.hpp"
#include "cuda_on_cpu/host_memory.h"

namespace cuda_on_cpu {

void NamedBarriers::meet(unsigned id, unsigned threads, Site site, bool waits) {
    Scheduler& scheduler = block_.scheduler();
    const unsigned whole_warps = (scheduler.threads() + kWarpLanes - 1) / kWarpLanes * kWarpLanes;
    if (id < 1 || id >= barriers_.size() || threads < 1 || threads % kWarpLanes != 0 || threads > whole_warps)
        block_.fail(cudaErrorLaunchFailure,
                    "named barrier " + std::to_string(id) + " for " + std::to_string(threads) +
                        " threads; expected a number of 1 to 15 (0 is __syncthreads), and a multiple of 32 "
                        "threads of the " +
                        std::to_string(whole_warps) + " in the block's warps",
                    site);
    Barrier& barrier = barriers_[id];
    if (barrier.arrived > 0 && barrier.expected != threads)
        block_.fail(cudaErrorLaunchFailure,
                    "named barrier " + std::to_string(id) + " for " + std::to_string(threads) +
                        " threads; others wait there for " + std::to_string(barrier.expected),
                    site);
    // A barrier counts whole warps, so the missing lanes of the last warp arrive with the block's
    // last thread.
    const bool is_last_thread = scheduler.thread_number() + 1 == scheduler.threads();
    if (is_last_thread) barrier.arrived += whole_warps - scheduler.threads();
    if (arrive(id, threads, site)) {
        release(id);
        if (!waits) return;
    } else {
        if (!waits) return;
        wait(id, "named_barrier", site);
    }
    block_.notify(event::ArrivalBarrierLeft{scheduler.thread_number(), &barrier, site});
}

NamedBarriers::Votes NamedBarriers::vote(unsigned id, unsigned threads, bool predicate, Site site) {
    Votes result;
    votes_.push_back({id, predicate, &result});
    meet(id, threads, site);
    return result;
}

void NamedBarriers::count_votes(unsigned id) {
    const auto is_here = [id](const Vote& vote) { return vote.id == id; };
    Votes sum;
    for (const Vote& vote : votes_) {
        sum.all += is_here(vote) ? 1 : 0;
        sum.true_ones += is_here(vote) && vote.predicate ? 1 : 0;
    }
    for (const Vote& vote : votes_) {
        if (is_here(vote)) *vote.result = sum;
    }
    std::erase_if(votes_, is_here);
}

void NamedBarriers::meet_in_tile(unsigned size, void* operand, TileWork work, const char* name, Site site) {
    Scheduler& scheduler = block_.scheduler();
    const unsigned self = scheduler.thread_number();
    const unsigned first = self / size * size;
    const unsigned threads = std::min(size, scheduler.threads() - first);
    const unsigned id = kNamed + kMaxThreads / size + self / size;
    if (tile_operands_.empty()) tile_operands_.resize(kMaxThreads);
    tile_operands_[self] = operand;
    if (barrier(id).arrived > 0 && tile_work_[id - kNamed] != work)
        block_.fail(cudaErrorLaunchFailure,
                    std::string(name) + ": other threads of this tile of " + std::to_string(size) +
                        " are in another function",
                    site);
    tile_work_[id - kNamed] = work;
    if (arrive(id, threads, site)) {
        const UsesHostMemory for_operands;
        if (work != nullptr) work(tile_operands_.data() + first, threads);
        release(id);
    } else {
        wait(id, name, site);
    }
    block_.notify(event::ArrivalBarrierLeft{self, &barrier(id), site});
}

bool NamedBarriers::arrive(unsigned id, unsigned threads, Site site) {
    Barrier& here = barrier(id);
    here.expected = threads;
    block_.notify(event::ArrivalBarrierArrived{block_.scheduler().thread_number(), &here, site});
    return ++here.arrived == threads;
}

void NamedBarriers::wait(unsigned id, const char* name, Site site) {
    Scheduler& scheduler = block_.scheduler();
    scheduler.thread().named_barrier = id;
    scheduler.wait(Wait::named_barrier, name, site);
}

void NamedBarriers::release(unsigned id) {
    barrier(id).arrived = 0;
    if (!votes_.empty()) count_votes(id);
    block_.notify(event::ArrivalBarrierCompleted{&barrier(id)});
    block_.scheduler().wake_if(Wait::named_barrier,
                               [id](const Thread& thread) { return thread.named_barrier == id; });
}

std::string NamedBarriers::describe(unsigned id) const {
    const bool is_tile = id >= kNamed;
    const Barrier& here = is_tile ? tiles_[id - kNamed] : barriers_[id];
    return (is_tile ? "" : "number " + std::to_string(id) + ", ") + std::to_string(here.arrived) + " of " +
           std::to_string(here.expected) + " threads there";
}

}  // namespace cuda_on_cpu
