#include "diagnosis.hpp"

#include "block.hpp"
#include "report_text.hpp"

namespace cuda_on_cpu {
namespace {

// The missing arrivals of the mbarrier or named barrier at which a thread waits; "" for other
// waits.
std::string missing_at_barrier(const BlockRunner& block, const Warp& warp, unsigned lane,
                               const Thread& thread) {
    if ((warp.at(Wait::mbarrier) & bit(lane)) != 0)
        return ", for parity " + std::to_string(thread.phase) + ": " + describe_mbarrier(thread.mbarrier);
    if ((warp.at(Wait::named_barrier) & bit(lane)) != 0)
        return ", " + block.named_barriers().describe(thread.named_barrier);
    return "";
}

// The lanes that have not arrived at the collectives in progress.
std::string missing_in_collectives(const Warp& warp, LaneMask lanes) {
    std::string text;
    for (unsigned g = 0; g < warp.group_count; ++g) {
        const Group& group = warp.groups[g];
        if ((group.arrived & lanes) != 0)
            text +=
                ", mask " + hexadecimal(group.mask) + ", missing " + hexadecimal(group.mask & ~group.arrived);
    }
    return text;
}

// The lanes of `left` that wait at the same place as the lowest one.
LaneMask lanes_beside_lowest(const Scheduler& scheduler, unsigned base, LaneMask left) {
    const Thread& leader = scheduler.thread(base + lowest(left));
    LaneMask together = 0;
    for (const unsigned lane : lanes_of(left)) {
        const Thread& other = scheduler.thread(base + lane);
        if (other.waits == leader.waits && same_place(other.site, leader.site)) together |= bit(lane);
    }
    return together;
}

std::string describe_waiting(const BlockRunner& block) {
    const Scheduler& scheduler = block.scheduler();
    std::string message = "block " + triple(block.index()) + ": " + std::to_string(scheduler.live_threads()) +
                          " thread(s) wait and none can go on";
    for (unsigned w = 0; w < scheduler.warps(); ++w) {
        const Warp& warp = scheduler.warp(w);
        const unsigned base = w * kWarpLanes;
        // Lanes of a warp that wait at the same place share a line.
        for (LaneMask left = warp.live; left != 0;) {
            const unsigned lane = lowest(left);
            const Thread& leader = scheduler.thread(base + lane);
            const LaneMask together = lanes_beside_lowest(scheduler, base, left);
            left &= ~together;
            message += "\n    warp " + std::to_string(w) + ", lanes " + hexadecimal(together) +
                       ", from thread " + triple(scheduler.index(base + lane)) + ": in " + leader.waits +
                       " at " + place(leader.site) + missing_at_barrier(block, warp, lane, leader) +
                       missing_in_collectives(warp, together);
        }
    }
    return message;
}

}  // namespace

std::string describe_deadlock(const BlockRunner& block) {
    std::string message = "deadlock in " + describe_waiting(block);
    const ClusterState* const cluster = block.between_blocks().stuck_cluster();
    if (cluster == nullptr) return message;
    for (const ClusterState::Block& other : cluster->block) {  // none of them runs
        if (other.runner == nullptr || other.runner == &block ||
            other.runner->scheduler().live_threads() == 0)
            continue;
        message += "\n    and in " + describe_waiting(*other.runner);
    }
    return message;
}

std::string running_thread() {
    return "block " + triple(blockIdx) + ", thread " + triple(threadIdx);
}

}  // namespace cuda_on_cpu
