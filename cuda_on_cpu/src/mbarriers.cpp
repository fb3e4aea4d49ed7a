#include "mbarriers.hpp"

#include <optional>
#include <string>

#include "block.hpp"

namespace cuda_on_cpu {
namespace {

bool aligned(const std::uint64_t* barrier) {
    return reinterpret_cast<std::uintptr_t>(barrier) % sizeof *barrier == 0;
}

}  // namespace

void Mbarriers::init(std::uint64_t* barrier, unsigned arrivals, Site site) {
    if (!aligned(barrier) || !block_.shared().holds(barrier, sizeof *barrier))
        block_.fail(
            cudaErrorIllegalAddress,
            "mbarrier_init: the mbarrier must be at a multiple of 8 bytes in the block's shared memory",
            site);
    if (arrivals < 1 || arrivals > kMostArrivals)
        block_.fail(cudaErrorLaunchFailure,
                    "mbarrier_init: " + std::to_string(arrivals) + " arrivals; expected 1 to " +
                        std::to_string(kMostArrivals),
                    site);
    write_mbarrier(barrier,
                   {.expected = arrivals, .pending = arrivals, .bytes = 0, .parity = 0, .published = false});
    unpublished_.push_back(barrier);
    block_.notify(event::ArrivalBarrierBegun{barrier});
}

void Mbarriers::inval(std::uint64_t* barrier, Site site) {
    usable(barrier, site);
    *barrier = 0;
}

void Mbarriers::publish() {
    for (std::uint64_t* barrier : unpublished_) {
        if (std::optional<MbarrierState> state = read_mbarrier(barrier); state) {
            state->published = true;
            write_mbarrier(barrier, *state);
        }
    }
    unpublished_.clear();
}

MbarrierState Mbarriers::usable(const std::uint64_t* barrier, Site site) {
    if (!aligned(barrier) || !block_.shared().holds(barrier, sizeof *barrier))
        block_.fail(cudaErrorIllegalAddress, "the mbarrier is not in the block's shared memory", site);
    const std::optional<MbarrierState> state = read_mbarrier(barrier);
    if (!state)
        block_.fail(cudaErrorLaunchFailure, "the mbarrier has not been initialised, or has been overwritten",
                    site);
    return *state;
}

// --- Arriving ------------------------------------------------------------------------------------

void Mbarriers::change(std::uint64_t* barrier, unsigned arrivals, int bytes, Site site) {
    const MbarrierChange change = change_mbarrier(barrier, arrivals, bytes);
    if (!change.error.empty()) block_.fail(cudaErrorLaunchFailure, change.error, site);
    if (change.phase_ended) wake_past(barrier);
}

void Mbarriers::arrive(std::uint64_t* barrier, unsigned bytes, Site site) {
    const MbarrierState state = usable(barrier, site);
    if (bytes > static_cast<unsigned>(kMostBytes))
        block_.fail(
            cudaErrorLaunchFailure,
            std::to_string(bytes) + " bytes expected; an mbarrier counts up to " + std::to_string(kMostBytes),
            site);
    block_.notify(event::MbarrierArrived{block_.scheduler().thread_number(), barrier, state.parity});
    change(barrier, 1, static_cast<int>(bytes), site);
    block_.step_back_after_arrival();
}

void Mbarriers::arrive_at(std::uint64_t* barrier, unsigned rank, Site site) {
    auto* const there = static_cast<std::uint64_t*>(map_shared(barrier, rank, site));
    if (there == barrier) return arrive(barrier, 0, site);
    if (block_.cluster().block[rank].runner->async().loads().ended())
        block_.fail(
            cudaErrorLaunchFailure,
            "an arrival at an mbarrier of block " + std::to_string(rank) + " of the cluster, which has ended",
            site);
    const std::optional<MbarrierState> state = read_mbarrier(there);
    if (state && !state->published)
        block_.fail(
            cudaErrorLaunchFailure,
            "an arrival at an mbarrier of another block without fence.mbarrier_init after its initialisation",
            site);
    if (state)
        block_.notify(event::RemoteMbarrierArrived{block_.scheduler().thread_number(), there, state->parity});
    const MbarrierChange change = change_mbarrier(there, 1, 0);
    if (!change.error.empty()) block_.fail(cudaErrorLaunchFailure, change.error, site);
    block_.cluster().events.happened();
}

void Mbarriers::expect(std::uint64_t* barrier, int bytes, Site site) {
    usable(barrier, site);
    change(barrier, 0, bytes, site);
}

// --- Waiting -------------------------------------------------------------------------------------

void Mbarriers::wait(std::uint64_t* barrier, unsigned parity, Site site) {
    const MbarrierState state = usable(barrier, site);
    if (parity > 1)
        block_.fail(cudaErrorLaunchFailure,
                    "an mbarrier's parity of " + std::to_string(parity) + "; expected 0 or 1", site);
    Scheduler& scheduler = block_.scheduler();
    if (state.parity == parity) {
        Thread& self = scheduler.thread();
        self.mbarrier = barrier;
        self.phase = parity;
        scheduler.wait(Wait::mbarrier, "mbarrier_wait", site);
    }
    block_.notify(event::MbarrierLeft{scheduler.thread_number(), barrier, parity, site});
}

bool Mbarriers::test(std::uint64_t* barrier, unsigned parity, Site site) {
    constexpr unsigned kMostEarlyTests = 32;
    unsigned char& early = early_tests_[block_.scheduler().thread_number()];
    if (usable(barrier, site).parity == parity && ++early < kMostEarlyTests) {
        block_.scheduler().yield();
        if (usable(barrier, site).parity == parity) return false;
    }
    early = 0;
    wait(barrier, parity, site);
    return true;
}

bool Mbarriers::wake_past(const std::uint64_t* barrier) {
    return block_.scheduler().wake_if(Wait::mbarrier, [barrier](const Thread& thread) {
        if (barrier != nullptr && thread.mbarrier != barrier) return false;
        const auto state = read_mbarrier(thread.mbarrier);
        return !state || state->parity != thread.phase;
    });
}

std::vector<std::uint64_t*> Mbarriers::awaited() const {
    const Scheduler& scheduler = block_.scheduler();
    std::vector<std::uint64_t*> barriers;
    for (unsigned w = 0; w < scheduler.warps(); ++w) {
        for (const unsigned lane : lanes_of(scheduler.warp(w).at(Wait::mbarrier))) {
            std::uint64_t* const barrier = scheduler.thread(w * kWarpLanes + lane).mbarrier;
            if (barriers.empty() || barriers.back() != barrier) barriers.push_back(barrier);
        }
    }
    return barriers;
}

}  // namespace cuda_on_cpu
