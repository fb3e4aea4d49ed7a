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
    // An overwritten mbarrier may be initialised again.
    if (!live_.insert(barrier).second && read_mbarrier(barrier))
        block_.fail(cudaErrorLaunchFailure,
                    "mbarrier_init: the mbarrier has been initialised already; expected that one thread does "
                    "so once, or mbarrier_inval before",
                    site);
    write_mbarrier(barrier,
                   {.expected = arrivals, .pending = arrivals, .bytes = 0, .parity = 0, .published = false});
    unpublished_.push_back(barrier);
    block_.notify(event::ArrivalBarrierBegun{barrier});
}

void Mbarriers::init_for_cpp(std::uint64_t* barrier, std::int64_t arrivals, Site site) {
    if (!aligned(barrier) || !block_.shared().holds(barrier, sizeof *barrier))
        block_.fail(cudaErrorIllegalAddress,
                    "a barrier that is not in the block's shared memory, at a multiple of 8 bytes", site);
    if (arrivals < 1 || arrivals > kMostArrivals)
        block_.fail(cudaErrorLaunchFailure,
                    "a barrier that expects " + std::to_string(arrivals) + " arrivals; expected 1 to " +
                        std::to_string(kMostArrivals),
                    site);
    const auto expected = static_cast<unsigned>(arrivals);
    write_mbarrier(barrier,
                   {.expected = expected, .pending = expected, .bytes = 0, .parity = 0, .published = true});
    block_.notify(event::ArrivalBarrierBegun{barrier});
}

void Mbarriers::inval(std::uint64_t* barrier, Site site) {
    usable(barrier, site);
    live_.erase(barrier);
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

void Mbarriers::check_count(const MbarrierState& state, std::int64_t count, std::int64_t bytes, Site site) {
    if (count < 1 || count > state.expected)
        block_.fail(cudaErrorLaunchFailure,
                    std::to_string(count) + " arrivals at an mbarrier that expects " +
                        std::to_string(state.pending) + " more of " + std::to_string(state.expected),
                    site);
    if (bytes < 0 || bytes > kMostBytes)
        block_.fail(
            cudaErrorLaunchFailure,
            std::to_string(bytes) + " bytes expected; an mbarrier counts up to " + std::to_string(kMostBytes),
            site);
}

void Mbarriers::change(std::uint64_t* barrier, unsigned arrivals, int bytes, unsigned leaving, Site site) {
    const MbarrierChange change = change_mbarrier(barrier, arrivals, bytes, leaving);
    if (!change.error.empty()) block_.fail(cudaErrorLaunchFailure, change.error, site);
    if (!change.phase_ended) return;
    block_.note_progress();
    if (const auto found = attached_.find(barrier); found != attached_.end())
        end_phases_of(found->second, barrier);
    wake_past(barrier);
}

unsigned Mbarriers::arrive(std::uint64_t* barrier, std::int64_t count, std::int64_t bytes, Site site) {
    const MbarrierState state = usable(barrier, site);
    check_count(state, count, bytes, site);
    block_.notify(event::MbarrierArrived{block_.scheduler().thread_number(), barrier, state.parity});
    change(barrier, static_cast<unsigned>(count), static_cast<int>(bytes), 0, site);
    block_.step_back_after_arrival();
    return state.parity;
}

void Mbarriers::arrive_and_drop(std::uint64_t* barrier, Site site) {
    const MbarrierState state = usable(barrier, site);
    check_count(state, 1, 0, site);
    block_.notify(event::MbarrierArrived{block_.scheduler().thread_number(), barrier, state.parity});
    change(barrier, 1, 0, 1, site);
    block_.step_back_after_arrival();
}

void Mbarriers::arrive_at(std::uint64_t* barrier, unsigned rank, std::int64_t count, std::int64_t bytes,
                          Site site) {
    auto* const there = static_cast<std::uint64_t*>(map_shared(barrier, rank, site));
    if (there == barrier) {
        arrive(barrier, count, bytes, site);
        return;
    }
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
    if (state) {
        check_count(*state, count, bytes, site);
        block_.notify(event::RemoteMbarrierArrived{block_.scheduler().thread_number(), there, state->parity});
    }
    const MbarrierChange change =
        change_mbarrier(there, static_cast<unsigned>(count), static_cast<int>(bytes));
    if (!change.error.empty()) block_.fail(cudaErrorLaunchFailure, change.error, site);
    block_.cluster().events.happened();
}

void Mbarriers::expect(std::uint64_t* barrier, int bytes, Site site) {
    if (block_.shared().holds(barrier, sizeof *barrier)) {
        usable(barrier, site);
        change(barrier, 0, bytes, 0, site);
        return;
    }
    shared_rank(barrier, site);  // fails unless it is in another block of the cluster
    const MbarrierChange change = change_mbarrier(barrier, 0, bytes);
    if (!change.error.empty()) block_.fail(cudaErrorLaunchFailure, change.error, site);
    block_.cluster().events.happened();
}

// --- Copies of threads (cp.async) attached to a phase --------------------------------------------

void Mbarriers::attach_copies(std::uint64_t* barrier, Site site) {
    const unsigned parity = usable(barrier, site).parity;
    const unsigned self = block_.scheduler().thread_number();
    Attached& attached = attached_[barrier];
    end_phases_of(attached, barrier);
    attached.parity = parity;
    block_.async().copies().move_to(attached.present, self);
    block_.notify(event::CopiesAttached{self});
}

// Checked before each use of the copies, because another block of the cluster may have ended the
// phase.
void Mbarriers::end_phases_of(Attached& attached, const std::uint64_t* barrier) {
    const std::optional<MbarrierState> state = read_mbarrier(barrier);
    if (!state || state->parity == attached.parity) return;
    block_.async().copies().append(attached.complete, attached.present);
    attached.parity = state->parity;
}

void Mbarriers::complete_copies(const std::uint64_t* barrier) {
    const auto found = attached_.find(barrier);
    if (found == attached_.end()) return;
    end_phases_of(found->second, barrier);
    block_.async().copies().complete(found->second.complete);
}

// --- Waiting -------------------------------------------------------------------------------------

void Mbarriers::wait(std::uint64_t* barrier, unsigned parity, Site site, const char* name) {
    const MbarrierState state = usable(barrier, site);
    if (parity > 1)
        block_.fail(cudaErrorLaunchFailure,
                    "an mbarrier's parity of " + std::to_string(parity) + "; expected 0 or 1", site);
    Scheduler& scheduler = block_.scheduler();
    if (state.parity == parity) {
        Thread& self = scheduler.thread();
        self.mbarrier = barrier;
        self.phase = parity;
        scheduler.wait(Wait::mbarrier, name, site);
    }
    complete_copies(barrier);
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
