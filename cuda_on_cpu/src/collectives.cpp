#include "collectives.hpp"

#include <atomic>
#include <cstdio>
#include <string>

#include "block.hpp"
#include "diagnosis.hpp"
#include "kernel_line.hpp"
#include "launch_state.hpp"
#include "report_text.hpp"

namespace cuda_on_cpu {

void Collectives::meet(unsigned named, void* operand, CollectiveWork work, const char* name, Site site,
                       Ended ended) {
    Scheduler& scheduler = block_.scheduler();
    Warp& warp = scheduler.warp();
    const unsigned lane = scheduler.current_lane();
    const LaneMask self = bit(lane);
    // Ignore bits of the mask for lanes beyond the end of the block.
    const LaneMask mask = named & warp.lanes;
    if ((mask & self) == 0 || ((mask & ~warp.live) != 0 && refuses(ended))) fail_on_mask(named, name, site);
    warp.operands[lane] = operand;
    block_.notify(event::CollectiveArrived{scheduler.thread_number(), mask, site});

    unsigned g = 0;
    while (g < warp.group_count && warp.groups[g].mask != mask)
        ++g;
    if (g == warp.group_count) {
        warp.groups[warp.group_count++] = Group{mask, 0, work, name, ended};
    } else if (warp.groups[g].work != work) {
        fail_in_different_collective(warp.groups[g], name, site);
    }
    warp.groups[g].arrived |= self;
    if (warp.groups[g].arrived == (mask & warp.live)) complete(warp, g);
    scheduler.suspend(name, site);
    if ((warp.reports_end & self) != 0) [[unlikely]]
        fail_on_end(warp, self, site);
}

void Collectives::complete(Warp& warp, unsigned g) {
    const Group group = warp.groups[g];
    warp.groups[g] = warp.groups[--warp.group_count];
    if (group.work != nullptr) group.work(Lanes{group.arrived, warp.operands.data()});
    block_.notify(event::CollectiveCompleted{block_.scheduler().current_warp(), group.mask, group.arrived});
    warp.ready |= group.arrived;
    block_.note_progress();
}

void Collectives::thread_ended(Warp& warp) {
    const LaneMask self = block_.scheduler().lane_bit();
    // In reverse order, because complete() moves the last group into the gap.
    for (unsigned g = warp.group_count; g-- > 0;) {
        const Group& group = warp.groups[g];
        if ((group.mask & self) == 0) continue;
        if (refuses(group.ended)) {
            // A waiting lane reports it, because it knows who called the function where it waits.
            if (warp.reports_end == 0) {
                warp.ended_early = self;
                warp.reports_end = bit(lowest(group.arrived));
                warp.ready |= warp.reports_end;
            }
            continue;
        }
        if (group.arrived == (group.mask & warp.live)) complete(warp, g);
    }
}

bool Collectives::refuses(Ended ended) const {
    return ended == Ended::refused || (ended == Ended::reported && block_.observed());
}

// --- __activemask --------------------------------------------------------------------------------

LaneMask Collectives::converged(const char* name, Site site) {
    Scheduler& scheduler = block_.scheduler();
    scheduler.hand_over(scheduler.note_wait(Wait::converging, name, site));
    return scheduler.warp().converged[scheduler.current_lane()];
}

void Collectives::converge(unsigned w) {
    const Scheduler& scheduler = block_.scheduler();
    Warp& warp = block_.scheduler().warp(w);
    const auto site_of = [&](unsigned lane) { return scheduler.thread(w * kWarpLanes + lane).site; };
    LaneMask& converging = warp.at(Wait::converging);
    while (converging != 0) {
        const Site leader = site_of(lowest(converging));
        LaneMask together = 0;
        for (const unsigned lane : lanes_of(converging)) {
            if (same_place(leader, site_of(lane))) together |= bit(lane);
        }
        for (const unsigned lane : lanes_of(together))
            warp.converged[lane] = together;
        converging &= ~together;
        warp.ready |= together;
    }
}

// --- Undefined values ----------------------------------------------------------------------------

void Collectives::tell_undefined_shuffle(LaneMask mask, unsigned source, const char* name, Site site) const {
    static std::atomic<bool> told = false;
    if (told.exchange(true)) return;
    const Scheduler& scheduler = block_.scheduler();
    const Warp& warp = scheduler.warp(scheduler.current_warp());
    const std::string why = (warp.lanes & bit(source)) == 0 ? "which the block does not have"
                            : (mask & bit(source)) == 0
                                ? "which the mask " + hexadecimal(mask) + " does not name"
                                : "which has ended (it has returned)";
    std::fprintf(
        stderr,
        "cuda_on_cpu: kernel %s: %s, %s: %s in lane %u reads lane %u of its warp, %s. What it gets is "
        "undefined, here NaN or -1\n",
        block_.launch().name.c_str(), running_thread().c_str(), place_and_caller(site).c_str(), name,
        scheduler.current_lane(), source, why.c_str());
}

// --- Failure -------------------------------------------------------------------------------------

void Collectives::fail(const std::string& message, Site site) {
    block_.fail_in(running_thread() + ", " + place_and_caller(site), cudaErrorLaunchFailure, message, site);
}

void Collectives::fail_on_mask(LaneMask mask, const char* name, Site site) {
    const Scheduler& scheduler = block_.scheduler();
    const Warp& warp = scheduler.warp(scheduler.current_warp());
    const std::string start = std::string(name) + ": mask " + hexadecimal(mask);
    if ((mask & scheduler.lane_bit()) == 0) {
        fail(start + " does not name the calling lane " + std::to_string(scheduler.current_lane()), site);
    }
    fail(start + " names lanes that have ended: " + hexadecimal(mask & warp.lanes & ~warp.live), site);
}

void Collectives::fail_in_different_collective(const Group& group, const char* name, Site site) {
    const Scheduler& scheduler = block_.scheduler();
    const Thread& other = scheduler.thread(scheduler.current_warp() * kWarpLanes + lowest(group.arrived));
    fail("lanes of one mask " + hexadecimal(group.mask) + " are in different functions: this one in " + name +
             ", lanes " + hexadecimal(group.arrived) + " in " + group.name + " at " + place(other.site),
         site);
}

void Collectives::fail_on_end(const Warp& warp, LaneMask self, Site site) {
    const Scheduler& scheduler = block_.scheduler();
    unsigned g = 0;
    while ((warp.groups[g].arrived & self) == 0)
        ++g;
    const Group& group = warp.groups[g];
    const unsigned ended = scheduler.current_warp() * kWarpLanes + lowest(warp.ended_early);
    const std::string thread =
        "block " + triple(block_.index()) + ", thread " + triple(scheduler.index(ended));
    block_.fail_in(thread + ", " + place_and_caller(site), cudaErrorLaunchFailure,
                   "this thread has ended, but lanes " + hexadecimal(group.arrived) +
                       " of its warp wait for it in " + group.name + " with mask " + hexadecimal(group.mask),
                   site);
}

}  // namespace cuda_on_cpu
